import { screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import type { Message, Ticket } from "../api/types";
import { chooseLanguage } from "../i18n";
import { alice, approved, bob, carol, cluster, event, item, step, ticketOf } from "../testing/fixtures";
import { renderPage, verbatim } from "../testing/render";
import { Timeline } from "./Timeline";

const [effective, revoked] = ["Read back from every targeted cluster.", "Every cluster was seen without it."];
const decided = [approved("leader", carol), approved("owner", bob)];
const applied = [
  event("submitted", 0),
  event("step-approved", 1_000, { step: "leader", actor: carol }),
  event("step-approved", 2_000, { step: "owner", actor: bob }),
  event("approved", 2_000),
  event("written", 2_010),
  event("compiled", 2_020, { revision: "0123456789abcdef" }),
  event("realized", 2_045, { cluster: "m1", revision: "0123456789abcdef" }),
];

function show(of: Ticket) {
  renderPage(<Timeline ticket={of} item={of.items[0] ?? item()} />, { path: "/", at: "/" });
  const nodes = within(screen.getByTestId("timeline"));
  return { nodes, node: (name: string) => within(nodes.getByTestId(`timeline-${name}`)) };
}

afterEach(() => chooseLanguage("en"));

describe("the timeline of an item", () => {
  it("says that access is effective only once every member was read back", () => {
    const { nodes, node } = show(ticketOf("applying", { steps: decided, clusters: [cluster("m1", "Realized"), cluster("m2", "Pending")] }, { events: applied }));
    expect(nodes.getByTestId("timeline-effective")).toHaveAttribute("data-value", "waiting");
    expect(nodes.queryByText(effective)).toBeNull();
    expect(nodes.getByTestId("timeline-clusters")).toHaveAttribute("aria-current", "step");
    expect(node("clusters").getByTestId("timeline-cluster-grant-m2")).toHaveTextContent("Pending");
  });

  it("shows names as the catalog does, with the exact name on hover", () => {
    const resource = { name: "trnv1:rsc:o:redis:clusters:c", title: "Orders cache" };
    const { node } = show(ticketOf("pending", { resource }, { events: [event("submitted", 0), event("voided", 1, { lines: [verbatim(`allow anyone: redis:connect on ${resource.name} until revoked`)] })] }));
    expect(node("voided").getByText("Orders cache")).toHaveAttribute("title", resource.name);
    expect(node("voided").getByText(/allow anyone/)).toHaveTextContent("allow anyone: redis:connect on Orders cache until revoked");
  });

  it("says at the last open step what applies to all of them, and the deadline at the current one", () => {
    const rules = { timeoutSeconds: 259200, onTimeout: "Deny", remindSeconds: 86400 } as const;
    const steps = [approved("leader", carol, {}), step("owner", "current", [bob], { ...rules, deadline: "2026-11-23T10:00:00Z" }), step("security", "waiting", [alice], rules)];
    const { nodes, node } = show(ticketOf("pending", { steps }, { events: [event("submitted", 0)] }));
    expect(node("step-security").getByTestId("shared-rules")).toHaveTextContent(/rejected\. The approvers are reminded after 1 day/);
    expect(nodes.getAllByTestId("shared-rules")).toHaveLength(1);
    expect(node("step-owner").getByTestId("timeout-owner")).toHaveTextContent("Rejected if there is no decision");
    expect(nodes.queryByTestId("reminders-owner")).toBeNull();
    expect(nodes.queryByTestId("timeout-security")).toBeNull();
  });

  it("says so when it is", () => {
    const { node } = show(ticketOf("effective", { steps: decided, clusters: [cluster("m1", "Realized")] }, { events: [...applied, event("effective", 2_050)] }));
    expect(node("effective").getByText(effective)).toBeVisible();
    expect(node("compiled").getByText("0123456789ab", { exact: false })).toBeVisible();
  });

  it("shows the time and the voters of a decided step, and the approvers without a time of one that is open", () => {
    const { nodes, node } = show(ticketOf("pending", { steps: [approved("leader", carol), step("owner", "current", [bob])] }, { requester: alice, events: applied.slice(0, 2) }));
    expect(nodes.getByTestId("timeline-step-leader")).toHaveAttribute("data-value", "done");
    expect(node("step-leader").getByTestId("vote-carol")).toHaveAttribute("data-value", "approve");
    expect(nodes.getByTestId("timeline-step-leader").querySelector("time")).not.toBeNull();
    expect(nodes.getByTestId("timeline-step-owner")).toHaveAttribute("data-value", "current");
    expect(nodes.getByTestId("timeline-step-owner").querySelector("time")).toBeNull();
    expect(node("step-owner").getByText("Bob Li")).toBeVisible();
    expect(node("submitted").getByText("Alice Zhang")).toBeVisible();
    expect(nodes.queryByTestId("timeline-approved")).toBeNull();
  });

  it("names those who decide, whatever the policy calls its step", () => {
    const { nodes } = show(
      ticketOf("pending", { steps: [step("owner", "current", [bob], { from: ["group:dba", `person:${bob.id}`] }), step("security", "waiting", [carol], { from: ["requester.leader"] }), step("last", "waiting", [carol])] }, { events: [event("submitted", 0)] }),
    );
    expect(nodes.getByTestId("timeline-step-owner")).toHaveTextContent("Waiting for the group dba or Bob Li");
    expect(nodes.getByTestId("timeline-step-security")).toHaveTextContent("Then the leader");
    expect(nodes.getByTestId("timeline-step-last")).toHaveTextContent("Then the step last");
  });

  it("shows nothing that is still to come after a rejection", () => {
    const { nodes } = show(ticketOf("rejected", { steps: [step("leader", "rejected", [carol]), step("owner", "waiting", [bob])] }, { events: [event("submitted", 0), event("step-rejected", 5, { step: "leader", actor: carol, comment: "No." })] }));
    expect(nodes.getByTestId("timeline-step-leader")).toHaveAttribute("data-value", "bad");
    for (const absent of ["step-owner", "clusters", "effective"]) expect(nodes.queryByTestId(`timeline-${absent}`)).toBeNull();
  });

  it("says that access is gone only when every member was seen without it", () => {
    const ending = [...applied, event("effective", 2_050), event("revoke-requested", 9_000, { actor: bob }), event("revoke-written", 9_010)];
    const { nodes } = show(ticketOf("revoking", { steps: decided, clusters: [cluster("m1", "Pending")] }, { events: ending }));
    expect(nodes.queryByText(revoked)).toBeNull();
  });

  it("says so when it is gone", () => {
    const ended = [...applied, event("effective", 2_050), event("revoke-requested", 9_000, { actor: bob }), event("revoke-written", 9_010), event("revoked", 9_050)];
    const { node } = show(ticketOf("revoked", { steps: decided, clusters: [cluster("m1", "Realized")] }, { events: ended }));
    expect(node("revoked").getByText(revoked)).toBeVisible();
  });

  it("says in the person's language why the portal acted, and leaves what people wrote as it is", async () => {
    await chooseLanguage("zh");
    const forged = '{"code":"ticket.approved-grant","text":"Approved."}';
    const { node } = show(
      ticketOf("failed", { steps: decided }, {
        events: [...applied, event("comment", 3_000, { actor: bob, comment: forged }), event("failed", 4_000, { message: { code: "ticket.object-vanished", text: "The object was removed outside the portal. Ask again if it is still needed." } })],
      }),
    );
    expect(node("failed").getByText("对象在门户之外被删除。如仍需要，请重新申请。")).toBeVisible();
    expect(node("comment").getByText(forged)).toBeVisible();
  });

  it("shows what voided the approvals as lines, and no revision beside them", () => {
    const { nodes, node } = show(
      ticketOf("pending", { steps: [step("leader", "current", [carol])] }, { events: [...applied.slice(0, 2), event("voided", 3_000, { lines: [verbatim("+ redis:admin"), verbatim("+ redis:flush")], revision: "fedcba9876543210" })] }),
    );
    expect(node("voided").getByText("It must be approved again. Added:")).toBeVisible();
    expect(nodes.getByTestId("timeline-voided").querySelector("pre")).toHaveTextContent("+ redis:admin + redis:flush");
    expect(node("voided").queryByText("fedcba987654", { exact: false })).toBeNull();
  });

  it("shows what voided the approvals in the person’s language", async () => {
    await chooseLanguage("zh");
    const inMember: Message = { code: "line.in-member", params: { member: "m2" }, text: "in member m2" };
    const leader: Message = { code: "line.approver-leader", text: "requester.leader" };
    const approvers: Message = { code: "line.approvers", params: { step: verbatim("dba"), count: 1, approvers: [leader] }, text: "dba: 1 of requester.leader" };
    const lines: Message[] = [inMember, { code: "line.added", params: { line: approvers }, text: "+ dba: 1 of requester.leader" }];
    const { nodes } = show(ticketOf("pending", { steps: [step("leader", "current", [carol])] }, { events: [...applied.slice(0, 2), event("voided", 3_000, { lines })] }));
    expect(nodes.getByTestId("timeline-voided").querySelector("pre")?.textContent).toBe("在成员集群 m2 中\n+ dba：申请人的上级 中的 1 人");
  });
});
