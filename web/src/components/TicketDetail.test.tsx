import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Ticket, TicketItem, TicketKind } from "../api/types";
import { chooseLanguage } from "../i18n";
import { alice, approved, bob, bobsCluster, carol, cluster, event, item, me, nodeSummary, step, ticket, ticketOf } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { TicketDetail } from "./TicketDetail";

function show(of: Ticket, over: Record<string, (call: Call) => Answer> = {}) {
  serve({ "GET /tickets/T-42/ledger": () => problem(403, "forbidden"), ...over });
  return renderPage(<TicketDetail ticket={of} />, { path: "/tickets/:id", at: "/tickets/T-42" });
}
const decided = [approved("leader", carol), approved("owner", bob)];

afterEach(() => chooseLanguage("en"));

describe("a ticket in detail", () => {
  it("says why a member does not have it, in the person's language", async () => {
    await chooseLanguage("zh");
    show(ticketOf("applying", { steps: decided, message: { code: "ticket.waiting-for-members", params: { members: { code: "names.list", params: { names: ["m2"] }, text: "m2" } }, text: "Waiting for m2." }, clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable", { message: { code: "member.no-answer", params: { member: "m2", address: "https://m2" }, text: "member m2 does not answer at https://m2" } })] }));
    expect(screen.getByTestId("ticket-message")).toHaveTextContent("等待 m2。");
    expect(screen.getAllByText("成员集群 m2 在 https://m2 没有响应")).toHaveLength(2);
    expect(screen.getByTestId("cluster-state-m1")).toHaveTextContent("已落实");
  });

  it("calls what a member lost taken back", () => {
    show(ticketOf("revoking", { steps: decided, clusters: [cluster("m1", "Realized"), cluster("m2", "Pending")] }, { events: [event("submitted", 0), event("approved", 1), event("revoke-requested", 2, { actor: bob })] }));
    expect(screen.getByTestId("cluster-state-m1")).toHaveTextContent("Removed");
    expect(screen.getByTestId("cluster-state-m2")).toHaveTextContent("Pending");
    expect(within(screen.getByTestId("timeline-cluster-revoke-m1")).getByText("Removed")).toBeVisible();
  });

  it("shows the worst of many members first, and all when asked", async () => {
    const clusters = Array.from({ length: 500 }, (_, i) => cluster(`m${i}`, i === 499 ? "Unreachable" : "Realized"));
    const members = { total: 500, targeted: 500, waiting: 1, listed: 500, states: { Realized: 499, Unreachable: 1 } };
    show(ticketOf("applying", { steps: decided, clusters, members }));
    const card = within(screen.getByRole("region", { name: "Clusters" }));
    expect(card.getByTestId("member-summary")).toHaveTextContent("1 Unreachable499 Realized Members: 500.");
    expect(card.getByTestId("cluster-state-m499")).toHaveTextContent("Unreachable");
    expect(card.queryByTestId("cluster-state-m498")).toBeNull();
    await userEvent.click(card.getByTestId("members-more"));
    expect(card.getByTestId("cluster-state-m498")).toBeVisible();
    expect(card.getByTestId("members-more")).toHaveTextContent("Show fewer");
    expect(within(screen.getByTestId("timeline")).getAllByRole("listitem").length).toBeLessThan(60);
  });

  it("counts the members that are not listed", () => {
    show(ticketOf("applying", { steps: decided, clusters: [cluster("m1", "Realized")], members: { total: 40, targeted: 40, waiting: 7, listed: 1, states: { Realized: 33, Pending: 7 } } }));
    expect(screen.getByTestId("member-summary")).toHaveTextContent("7 Pending33 Realized Members: 40. Counted, but not listed: 39.");
  });

  it.each([
    ["pending", true],
    ["revoked", false],
    ["rejected", false],
  ] as const)("promises members only where they are still to come: %s", (state, promised) => {
    show(ticketOf(state));
    expect(screen.queryAllByText("The member clusters show here once everyone has approved.")).toHaveLength(promised ? 1 : 0);
  });

  it.each([
    ["rejected", [event("submitted", 0), event("step-rejected", 5, { actor: carol, step: "leader" })]],
    ["withdrawn", [event("submitted", 0), event("withdrawn", 5, { actor: alice })]],
    ["revoked", [event("submitted", 0), event("approved", 1), event("revoke-requested", 2, { actor: bob }), event("revoked", 5)]],
    ["expired", [event("submitted", 0), event("approved", 1), event("expired", 5)]],
  ] as const)("says when it ended instead of when it would expire: %s", (state, events) => {
    show(ticketOf(state, { expiresAt: "2026-12-20T10:00:00Z" }, { events: [...events] }));
    expect(within(screen.getByTestId("ticket-ended")).getByRole("time")).toHaveAttribute("dateTime", "2026-11-20T10:00:00.005Z");
    expect(screen.queryByText("Expires")).toBeNull();
  });

  it("shows on how many nodes the change is enforced", () => {
    show(ticketOf("applying", { clusters: [cluster("m1", "Realized")], nodes: nodeSummary({ realized: 2, lagging: 1 }) }));
    expect(within(screen.getByTestId("nodes")).getByText("Realized on 2 of 3 nodes")).toBeVisible();
  });

  it("shows the nodes of several resources apart, those with missing nodes first, and no resource twice", () => {
    const other = { id: "other", name: "trnv1:rsc:trip-com:redis:clusters:other", title: "Other" };
    const clusters = [cluster("m1", "Realized")];
    show(
      ticket({
        state: "applying",
        items: [
          item({ position: 0, state: "applying", clusters, nodes: nodeSummary() }),
          item({ position: 1, state: "applying", clusters, nodes: nodeSummary() }),
          item({ position: 2, state: "applying", resource: other, clusters, nodes: nodeSummary({ realized: 1, unknown: 2 }) }),
        ],
      }),
    );
    expect(screen.getAllByText(/^Realized on \d of 3 nodes$/).map((found) => found.textContent)).toEqual(["Realized on 1 of 3 nodes", "Realized on 3 of 3 nodes"]);
    expect(screen.getByTestId(`nodes-${other.name}`)).toHaveAttribute("data-value", "warn");
  });

  it("shows the id of the trace with a link where an administrator configured one", () => {
    const traceId = "0123456789abcdef0123456789abcdef";
    show(ticket({ traceId, traceUrl: `https://jaeger.example/trace/${traceId}` }));
    const fact = within(screen.getByTestId("ticket-trace"));
    expect(fact.getByRole("link", { name: traceId })).toHaveAttribute("href", `https://jaeger.example/trace/${traceId}`);
    expect(fact.getByRole("button", { name: `Copy the trace ID: ${traceId}` })).toBeVisible();
  });

  it("shows the id of the trace in Chinese and without a link", async () => {
    await chooseLanguage("zh");
    const traceId = "0123456789abcdef0123456789abcdef";
    show(ticket({ traceId }));
    expect(screen.getByText("链路追踪 ID")).toBeVisible();
    expect(screen.getByTestId("ticket-trace")).toHaveTextContent(traceId);
    expect(within(screen.getByTestId("ticket-trace")).queryByRole("link")).toBeNull();
  });

  it("shows no trace where there is none", () => {
    show(ticket());
    expect(screen.queryByTestId("ticket-trace")).toBeNull();
    expect(screen.queryByText("Trace ID")).toBeNull();
  });

  it.each([
    ["effective", 1],
    ["revoking", 0],
  ] as const)("promises an end only to what is in force: %s", (state, times) => {
    show(ticketOf(state, { expiresAt: "2026-12-20T10:00:00Z" }));
    expect(screen.queryAllByText("Expires")).toHaveLength(times);
    expect(screen.queryByTestId("ticket-ended")).toBeNull();
  });

  it("folds a long reason and opens it on demand", async () => {
    show(ticket({ reason: "Checkout needs it. ".repeat(60), requester: alice }));
    const toggle = screen.getByRole("button", { name: "Show all of it", expanded: false });
    await userEvent.click(toggle);
    expect(screen.getByRole("button", { name: "Show less", expanded: true })).toBeVisible();
  });

  it("leaves a short reason alone", () => {
    show(ticket());
    expect(screen.queryByRole("button", { name: "Show all of it" })).toBeNull();
  });

  it("shows a quorum, each vote with for whom it was, and who can still decide", () => {
    const votes = [{ person: bob, onBehalfOf: alice, approve: true, at: "2026-11-20T10:00:01Z", comment: "Fine." }];
    show(ticketOf("pending", { steps: [step("security", "current", [alice, carol, { id: "dave", displayName: "Dave Sun" }], { quorum: 2, votes })] }));
    const node = within(screen.getByTestId("timeline-step-security"));
    expect(node.getByTestId("step-quorum")).toHaveTextContent("1 of 2 approvals, by any of 3 people");
    expect(node.getByTestId("vote-bob")).toHaveTextContent("for Alice Zhang");
    expect(node.getByText("Fine.")).toBeVisible();
    expect(node.queryByTestId("person-alice")).toBeNull();
    expect(node.getByTestId("person-dave")).toBeVisible();
  });

  it("has several items in a table, each with its own line", async () => {
    const orders = { ...bobsCluster, id: "orders", title: "Orders" };
    show(
      ticket({
        items: [item({ state: "effective", steps: decided }), item({ position: 1, resource: orders })],
        events: [event("submitted", 0), event("step-approved", 5, { item: 0, step: "leader", actor: carol }), event("effective", 9, { item: 0 })],
      }),
    );
    expect(screen.getByTestId("item-state-0")).toHaveAttribute("data-value", "effective");
    expect(screen.getByTestId("item-state-1")).toHaveAttribute("data-value", "pending");
    expect(within(screen.getByTestId("item-0")).getByTestId("timeline-effective")).toHaveAttribute("data-value", "done");
    expect(within(screen.getByTestId("item-1")).queryByTestId("timeline")).toBeNull();
    await userEvent.click(screen.getByTestId("item-toggle-1"));
    expect(within(screen.getByTestId("item-1")).getByTestId("timeline-step-leader")).toHaveAttribute("data-value", "current");
  });

  it("leads from each item to its connections, for those who may see connections", async () => {
    const orders = { ...bobsCluster, id: "orders", title: "Orders" };
    const several = ticket({ items: [item(), item({ position: 1, resource: orders, actions: ["redis:*"] })] });
    show(several, { "GET /me": () => ({ body: me({ roles: ["application-owner"] }) }) });
    expect(await screen.findByTestId("item-flows-0")).toHaveAttribute("href", "/flows?subject=app-888&resource=bobs-cluster&action=redis%3Aconnect&window=31d");
    expect(screen.getByTestId("item-flows-1")).toHaveAttribute("href", "/flows?subject=app-888&resource=orders&window=31d");
    expect(screen.getByTestId("item-flows-1")).toHaveAccessibleName("Connections of Payments API to Orders");
    cleanup();
    show(several);
    expect(screen.getByTestId("item-1")).toBeVisible();
    expect(screen.queryByTestId("item-flows-0")).toBeNull();
  });

  it("leads to the statement in its policy, for the security team and auditors", async () => {
    const granted = ticketOf("effective", { steps: decided, policy: "portal-redis" });
    show(granted, { "GET /me": () => ({ body: me({ roles: ["auditor"] }) }) });
    expect(await screen.findByTestId("ticket-statement")).toHaveAttribute("href", "/access-policies/portal-redis?sid=t-42-1");
    cleanup();
    show(granted, { "GET /me": () => ({ body: me({ roles: ["application-owner"] }) }) });
    expect(await screen.findByTestId("ticket-flows")).toBeVisible();
    expect(screen.queryByTestId("ticket-statement")).toBeNull();
  });

  it("shows on demand what changes, and what the approvals are bound to", async () => {
    show(ticketOf("pending", { lines: [verbatim("app/888 -> bobs-cluster 6379/TCP")] }), {
      "GET /tickets/T-42/change": () => ({ body: { objects: [{ layer: "dataplane", kind: "CiliumNetworkPolicy", name: "acp-x", enforcer: "cilium", before: "a: 1\nb: 2\n", after: "a: 1\nb: 3\n" }], refused: [{ code: "verbatim", params: { text: "nothing enforces UDP" }, text: "nothing enforces UDP" }] } }),
    });
    await userEvent.click(screen.getByTestId("tab-change"));
    const object = within(await screen.findByTestId("diff-object"));
    expect(object.getByText("+1")).toBeVisible();
    expect(object.getAllByRole("cell").some((cell) => cell.textContent === "Added: +b: 3")).toBe(true);
    expect(screen.getByTestId("change-refused")).toHaveTextContent("nothing enforces UDP");
    expect(screen.getByTestId("granted-lines")).toHaveTextContent("app/888 -> bobs-cluster 6379/TCP");
  });

  it("translates what the approvals are bound to, beside the exact lines", async () => {
    await chooseLanguage("zh");
    const peer = { code: "line.anyone", text: "anyone" };
    const target = { code: "line.pods", params: { label: "redis=bobs" }, text: "pods with redis=bobs" };
    const line = { code: "line.allow", params: { peer, target, port: "6379/TCP" }, text: "allow anyone to pods with redis=bobs on 6379/TCP" };
    show(ticketOf("pending", { lines: [line, verbatim("+ spec.mode: 1")] }), { "GET /tickets/T-42/change": () => ({ body: { objects: [], refused: [] } }) });
    await userEvent.click(screen.getByTestId("tab-change"));
    const lines = await screen.findByTestId("granted-lines");
    expect(within(lines).getByText("允许 任何来源 访问 标签为 redis=bobs 的 Pod 的 6379/TCP")).toBeVisible();
    expect(within(lines).getByText(line.text)).toBeVisible();
    expect(within(lines).getAllByText("+ spec.mode: 1")).toHaveLength(1);
  });

  it.each([
    ["nobody who may not see them", () => problem(403, "forbidden"), 0],
    ["who may", () => ({ body: { items: [{ seq: 7, at: "2026-11-20T10:00:00Z", action: "ticket.submitted", object: "T-42", hash: "abcdef0123456789", prev: "" }] } }), 1],
  ] as const)("shows the ledger’s lines to %s", async (_, ledger, tabs) => {
    show(ticket(), { "GET /tickets/T-42/ledger": ledger });
    if (tabs > 0) {
      await userEvent.click(await screen.findByTestId("tab-history"));
      expect(screen.getByTestId("ticket-history")).toHaveTextContent("ticket.submitted");
    } else {
      await screen.findByTestId("comment-box");
      expect(screen.queryByTestId("tab-history")).toBeNull();
    }
  });

  it("reads a long history page by page", async () => {
    const line = (seq: number) => ({ seq, at: "2026-11-20T10:00:00Z", action: "ticket.commented", object: "T-42", hash: "abcdef0123456789", prev: "" });
    show(ticket(), {
      "GET /tickets/T-42/ledger": ({ search }) => ({ body: search.get("cursor") === "c2" ? { items: [line(9)] } : { items: [line(7), line(8)], nextCursor: "c2" } }),
    });
    await userEvent.click(await screen.findByTestId("tab-history"));
    await userEvent.click(screen.getByTestId("load-more"));
    await waitFor(() => expect(within(screen.getByTestId("ticket-history")).getAllByRole("row")).toHaveLength(4));
    expect(screen.queryByTestId("load-more")).toBeNull();
  });

  it("shows the ledger’s lines in the person’s language", async () => {
    await chooseLanguage("zh");
    const details = { comment: "The access review has ended already.", commentCode: "review.closed", application: "orders", until: "2026-03-02T10:00:00Z" };
    const line = {
      seq: 7, at: "2026-11-20T10:00:00Z", action: "ticket.revoked", object: "T-42", hash: "abcdef0123456789", prev: "", details,
      message: { code: "ledger.action.ticket.revoked", text: "Every member was read without the access." },
      labels: { comment: { code: "ledger.detail.comment", text: "comment" }, application: { code: "ledger.detail.application", text: "application" } },
      texts: { comment: [{ code: "review.closed", text: "The access review has ended already." }] },
    };
    show(ticket(), { "GET /tickets/T-42/ledger": () => ({ body: { items: [line] } }) });
    await userEvent.click(await screen.findByTestId("tab-history"));
    const history = screen.getByTestId("ticket-history");
    for (const text of ["已确认每个成员集群中都不再有此访问。", "ticket.revoked", "说明：该访问复核已经结束。", "应用：orders", "until：2026-03-02T10:00:00Z"]) expect(history).toHaveTextContent(text);
    expect(history).not.toHaveTextContent("commentCode");
  });

  it("takes a comment", async () => {
    const said: unknown[] = [];
    show(ticket(), {
      "POST /tickets/T-42/comments": ({ body }) => {
        said.push(body);
        return { body: ticket({ version: 4 }) };
      },
    });
    await userEvent.type(await screen.findByTestId("comment-text"), "Any news?");
    await userEvent.click(screen.getByTestId("comment-send"));
    await waitFor(() => expect(screen.getByTestId("comment-text")).toHaveValue(""));
    expect(said).toEqual([{ comment: "Any news?" }]);
  });

  const kinds: [TicketKind, Partial<TicketItem>, string][] = [
    ["extend", { target: { ticket: "T-12", item: 0 } }, "Extends the access of Payments API to Bob’s cluster with redis:connect by 7 days."],
    ["revoke", { target: { ticket: "T-12", item: 0 } }, "Revokes the access of Payments API to Bob’s cluster that T-12 granted."],
    ["mode", { application: undefined, actions: undefined, fromMode: "Audit", toMode: "Enforce" }, "Switches Bob’s cluster from Audit to Enforce. Only what is granted can connect."],
    ["onboard", { application: undefined, actions: undefined, toMode: "Audit" }, "Onboards Bob’s cluster in Audit."],
    ["offboard", { application: undefined, actions: undefined }, "Offboards Bob’s cluster: anyone can then connect to it."],
    ["class", { application: undefined, resource: undefined, object: { kind: "ResourceClass", name: "redis", verb: "update" } }, "Changes the resource class redis; see Change for the details."],
    ["workload", { resource: undefined, actions: undefined, workload: { id: "rack-7", before: [], after: ["10.0.0.0/24"] } }, "Lets 10.0.0.0/24 (rack-7) act as Payments API: they can use all that it was granted."],
    ["approval-policy", { application: undefined, resource: undefined, object: { kind: "ApprovalPolicy", name: "default", verb: "delete" } }, "Deletes the approval policy default."],
  ];
  it("shows the addresses of a workload before and after, and promises no members", async () => {
    show(ticketOf("pending", { resource: undefined, actions: undefined, workload: { id: "rack-7", before: ["10.0.0.0/28"], after: ["10.0.0.0/28", "10.0.1.0/24"] } }, { kind: "workload" }));
    expect(await screen.findByTestId("addresses-before")).toHaveTextContent("10.0.0.0/28");
    expect(screen.getByTestId("addresses-after")).toHaveTextContent("10.0.1.0/24");
    expect(screen.queryByText(/member clusters show here/)).toBeNull();
  });

  it.each(kinds)("says in words what a decision about %s does", async (kind, of, want) => {
    const can = { approve: true, reject: true, withdraw: false, revoke: false, extend: false, review: false };
    show(ticketOf("pending", { durationSeconds: 604_800, ...of, can }, { kind }));
    expect(await screen.findByTestId("decision-bar")).toHaveTextContent(want);
  });
});
