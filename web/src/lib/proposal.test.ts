import { describe, expect, it } from "vitest";
import type { ProposalLine } from "../api/types";
import { app888 } from "../testing/fixtures";
import { adoptBodies, isAdoptable, newLines, ofClient, reviewed } from "./proposal";

const line = (over: Partial<ProposalLine> = {}): ProposalLine => ({
  subject: app888,
  action: "redis:connect",
  state: "new",
  grantable: true,
  evidence: { count: 10, firstSeen: "2026-11-20T09:00:00Z", lastSeen: "2026-11-20T10:00:00Z", days: 1, daysObserved: 2, clusters: ["m1"], decisions: { unmanaged: 10 } },
  ...over,
});
const client = (id: string, over: Partial<ProposalLine> = {}) => line({ subject: { id, name: `trnv1:rsc:x:iam:sa:app/${id}`, title: id }, ...over });

describe("a line", () => {
  it.each([
    ["that passes today can be asked for", {}, true],
    ["that audit would refuse, too", { state: "audited" }, true],
    ["that is refused, too", { state: "denied" }, true],
    ["that is allowed already needs nothing", { state: "covered" }, false],
    ["of a client that the catalog does not know cannot", { subject: { name: "n", title: "n" } }, false],
    ["of a client that no class covers cannot", { grantable: false }, false],
  ] as [string, Partial<ProposalLine>, boolean][])("%s", (_, over, want) => {
    expect(isAdoptable(line(over))).toBe(want);
  });

  it("is shown before those that are allowed, the busiest first", () => {
    const seen = (count: number) => ({ ...line().evidence, count });
    const { open, covered } = reviewed([client("a", { evidence: seen(1) }), client("b", { state: "covered" }), client("c", { evidence: seen(9), state: "audited" })]);
    expect([open, covered].map((lines) => lines.map(({ subject }) => subject.id))).toEqual([["c", "a"], ["b"]]);
  });
});

describe("lines", () => {
  it("of one client are those that nothing allows yet", () => {
    const lines = [client("a", { action: "x" }), client("b"), client("a", { action: "y" }), client("a", { action: "z", state: "covered" })];
    expect(ofClient(lines, client("a")).map(({ action }) => action)).toEqual(["x", "y"]);
  });

  it("are new only if the server says so", () => {
    expect(newLines([client("a", { newSinceReview: true }), client("b", { newSinceReview: false }), client("c")]).map(({ subject }) => subject.id)).toEqual(["a"]);
  });
});

describe("the request", () => {
  it("has one item per client, with all of its actions, each once", () => {
    expect(adoptBodies("r", [client("a", { action: "y" }), client("b"), client("a", { action: "x" }), client("a", { action: "x" })], 60)).toEqual([
      {
        kind: "grant",
        adopt: true,
        items: [{ application: "a", resource: "r", actions: ["x", "y"] }, { application: "b", resource: "r", actions: ["redis:connect"] }],
        durationSeconds: 60,
      },
    ]);
  });

  it("is none if no line can be requested", () => {
    expect(adoptBodies("r", [client("a", { state: "covered" })], undefined)).toEqual([]);
  });

  it("has no more clients than are allowed, and the others are in further ones", () => {
    const many = Array.from({ length: 103 }, (_, index) => client(String(index)));
    expect(adoptBodies("r", many, undefined).map(({ items }) => items.length)).toEqual([50, 50, 3]);
  });
});
