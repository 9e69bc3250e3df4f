import { describe, expect, it } from "vitest";
import { approverOf, changePath, quorumOf } from "./policies";

describe("an approval policy", () => {
  it.each([
    ["requester.leader", { kind: "leader", id: "" }],
    ["resource.owner", { kind: "resource-owner", id: "" }],
    ["application.owner", { kind: "application-owner", id: "" }],
    ["group:security", { kind: "group", id: "security" }],
    ["person:bob", { kind: "user", id: "bob" }],
    ["something", { kind: "user", id: "something" }],
  ])("names %s", (text, want) => {
    expect(approverOf(text)).toEqual(want);
  });

  it.each([
    { reason: "one person needs no number", quorum: "any", approvers: ["person:bob"], want: undefined },
    { reason: "a role neither", quorum: "any", approvers: ["requester.leader"], want: undefined },
    { reason: "a group is many", quorum: "any", approvers: ["group:security"], want: { kind: "any", count: 1 } },
    { reason: "one of many", quorum: "1", approvers: ["person:bob", "person:carol"], want: { kind: "any", count: 1 } },
    { reason: "two", quorum: "2", approvers: ["group:security"], want: { kind: "count", count: 2 } },
    { reason: "all", quorum: "all", approvers: ["group:security"], want: { kind: "all", count: 0 } },
  ])("$reason", ({ quorum, approvers, want }) => {
    expect(quorumOf({ quorum, approvers })).toEqual(want);
  });

  it("is changed by a request", () => {
    expect([changePath("ApprovalPolicy", "prod"), changePath("ResourceClass", "redis"), changePath("SubjectClass")]).toEqual([
      "/requests/new?kind=approval-policy&object=ApprovalPolicy&name=prod",
      "/requests/new?kind=class&object=ResourceClass&name=redis",
      "/requests/new?kind=class&object=SubjectClass&verb=create",
    ]);
  });
});
