import { act, cleanup, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { keys } from "../api/keys";
import type { Ticket } from "../api/types";
import { TicketPage } from "../pages/TicketPage";
import { approved, bob, bobsCluster, carol, cluster, event, item, me, nothing, step, ticket, ticketOf } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";

/** A server that holds one ticket and changes it as the handler says. */
function start(first: Ticket, write: Record<string, (call: Call) => Answer> = {}) {
  let current = first;
  const keep = (answer: Answer) => {
    if ((answer.status ?? 200) < 400) current = answer.body as Ticket;
    return answer;
  };
  const calls = serve({
    "GET /me": () => ({ body: me({ person: carol }) }),
    "GET /tickets/T-42": () => ({ body: current }),
    ...Object.fromEntries(Object.entries(write).map(([operation, handler]) => [`POST /tickets/T-42/${operation}`, (call: Call) => keep(handler(call))])),
  });
  const { cache } = renderPage(<TicketPage />, { path: "/tickets/:id", at: "/tickets/T-42" });
  /** The ticket is read again, as after an event of the stream. */
  const change = (next: Ticket) =>
    act(async () => {
      current = next;
      await cache.invalidateQueries({ queryKey: keys.ticket.one("T-42") });
    });
  return { calls, change, writes: () => calls.filter((call) => call.method === "POST"), set: (next: Ticket) => (current = next) };
}

const decides = { ...nothing, approve: true, reject: true };
const decidable = ticketOf("pending", { can: decides });
const rejected = ticketOf("rejected", { steps: [step("leader", "rejected", [carol])] }, { version: 4 });

describe("the decision bar", () => {
  it("is absent for whom the ticket does not concern", async () => {
    start(ticket());
    await screen.findByTestId("ticket-state");
    expect(screen.queryByTestId("decision-bar")).toBeNull();
  });

  it("names what an approval lets happen", async () => {
    start(decidable);
    expect(await screen.findByTestId("decision-bar")).toHaveTextContent("Lets Payments API reach Bob’s cluster with redis:connect, until revoked.You decide as leader.");
  });

  it("approves the version that was shown, and shows the answer", async () => {
    const { writes } = start(decidable, { decision: () => ({ body: ticketOf("pending", { steps: [approved("leader", carol), step("owner", "current", [bob])] }, { version: 4 }) }) });
    await userEvent.click(await screen.findByTestId("approve-button"));
    await waitFor(() => expect(screen.getByTestId("timeline-step-owner")).toHaveAttribute("data-value", "current"));
    expect(writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 3 }]);
    expect(screen.queryByTestId("decision-bar")).toBeNull();
  });

  it("reads again what it has decided: more may have happened before the answer came", async () => {
    const { set } = start(decidable, {
      decision: () => {
        queueMicrotask(() => set(ticketOf("effective", {}, { version: 7 })));
        return { body: ticketOf("approved", {}, { version: 4 }) };
      },
    });
    await userEvent.click(await screen.findByTestId("approve-button"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "effective"));
  });

  it("does not reject without a comment", async () => {
    const { writes } = start(decidable, { decision: () => ({ body: rejected }) });
    await userEvent.click(await screen.findByTestId("reject-button"));
    expect(screen.getByText("Enter a comment. Alice Zhang can read it.")).toBeVisible();
    expect(screen.getByTestId("decision-comment")).toHaveFocus();
    expect(writes()).toEqual([]);
    await userEvent.type(screen.getByTestId("decision-comment"), "Use the replica.");
    await userEvent.click(screen.getByTestId("reject-button"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "rejected"));
    expect(writes().map((call) => call.body)).toEqual([{ decision: "reject", version: 3, comment: "Use the replica." }]);
  });

  it("shows what changed when someone else was faster", async () => {
    const { set } = start(decidable, { decision: () => problem(409, "stale") });
    await screen.findByTestId("approve-button");
    set(rejected);
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "rejected"));
  });

  const commented = { ...decidable, version: 4, events: [...decidable.events, event("comment", 9, { actor: bob, comment: "Any news?" })] };
  const wider = ticketOf("pending", { can: decides, actions: ["redis:connect", "redis:admin"] }, { version: 4 });

  it("keeps the typed comment when the ticket gets a new entry, and decides about the version that is shown", async () => {
    const { change, writes } = start(decidable, { decision: () => ({ body: ticketOf("approved", {}, { version: 5 }) }) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Fine with me.");
    expect(screen.queryByTestId("decision-entries")).toBeNull();
    await change(commented);
    expect(await screen.findByTestId("decision-entries")).toHaveTextContent("There are new entries in the timeline. What you decide about is the same.");
    expect(screen.getByTestId("decision-comment")).toHaveValue("Fine with me.");
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 4, comment: "Fine with me." }]));
  });

  it("keeps the comment and the error when the decision was about an earlier version", async () => {
    const { set, writes } = start(decidable, { decision: ({ body }) => ((body as { version: number }).version === 4 ? { body: ticketOf("approved", {}, { version: 5 }) } : problem(409, "stale")) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Fine with me.");
    set(commented);
    await userEvent.click(screen.getByTestId("approve-button"));
    expect(await screen.findByTestId("decision-entries")).toBeVisible();
    expect(screen.getByText(/It changed since you opened it/)).toBeVisible();
    expect(screen.getByTestId("decision-comment")).toHaveValue("Fine with me.");
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(writes().map((call) => (call.body as { version: number }).version)).toEqual([3, 4]));
  });

  it("does not decide about content that changed before the person has continued with it", async () => {
    const { change, writes } = start(decidable, { decision: () => ({ body: ticketOf("approved", {}, { version: 5 }) }) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Fine with me.");
    await change(wider);
    expect(await screen.findByTestId("decision-changed")).toHaveTextContent("What you decide about has changed.");
    expect(screen.getByTestId("approve-button")).toBeDisabled();
    expect(screen.getByTestId("reject-button")).toBeDisabled();
    await userEvent.click(screen.getByTestId("approve-button"));
    expect(writes()).toEqual([]);
    await userEvent.click(screen.getByTestId("decision-continue"));
    expect(screen.queryByTestId("decision-changed")).toBeNull();
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 4, comment: "Fine with me." }]));
  });

  it("shows why a decision was refused, and that it is not needed any more, when another person decided first", async () => {
    const { set } = start(decidable, { decision: () => problem(409, "stale") });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Fine with me.");
    set(rejected);
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "rejected"));
    expect(screen.getByTestId("decision-bar")).toHaveTextContent(/It changed since you opened it.*does not wait for your decision any more/);
    expect(screen.getByTestId("comment-text")).toHaveValue("Fine with me.");
  });

  it("continues with the other items after a decision or a comment of the person, without a notice", async () => {
    const part = (state: "pending" | "approved", version: number) => ticket({ version, items: [item({ state, can: state === "pending" ? decides : nothing }), item({ position: 1, resource: orders, can: decides })], can: decides });
    const { writes } = start(part("pending", 3), { comments: () => ({ body: part("pending", 4) }), decision: ({ body }) => ({ body: part("approved", (body as { version: number }).version + 1) }) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Why?");
    await userEvent.click(screen.getByTestId("comment-only"));
    await waitFor(() => expect(screen.getByTestId("decision-comment")).toHaveValue(""));
    expect(screen.queryByTestId("decision-entries")).toBeNull();
    await userEvent.click(screen.getByTestId("decision-about"));
    await userEvent.click(await screen.findByRole("option", { name: "Payments API to Bob’s cluster" }));
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(screen.queryByTestId("decision-about")).toBeNull());
    await waitFor(() => expect(screen.getByTestId("approve-button")).toBeEnabled());
    expect(screen.queryByTestId("decision-changed")).toBeNull();
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ comment: "Why?" }, { decision: "approve", version: 4, item: 0 }, { decision: "approve", version: 5 }]));
  });

  it("keeps the comment while the person logs in again", async () => {
    sessionStorage.clear();
    const { writes } = start(decidable, { decision: () => problem(403, "login-too-old") });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Fine");
    await userEvent.click(screen.getByTestId("approve-button"));
    expect(await screen.findByTestId("login-again")).toHaveAttribute("href", "/auth/login?fresh=true&returnTo=%2Ftickets%2FT-42");
    await userEvent.type(screen.getByTestId("decision-comment"), " with me.");
    cleanup();
    const again = start(decidable, { decision: () => ({ body: ticketOf("approved", {}, { version: 4 }) }) });
    expect(writes()).toHaveLength(1);
    await waitFor(() => expect(screen.getByTestId("decision-comment")).toHaveValue("Fine with me."));
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(again.writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 3, comment: "Fine with me." }]));
    await waitFor(() => expect(sessionStorage.getItem("acp-decision-comment")).toBeNull());
  });

  it("does not show the comment of another person or about another ticket", async () => {
    for (const draft of [{ person: "bob", ticket: "T-42", comment: "x" }, { person: carol.id, ticket: "T-1", comment: "x" }, { person: carol.id, ticket: "T-42", comment: 1 }, null]) {
      sessionStorage.setItem("acp-decision-comment", JSON.stringify(draft));
      start(decidable);
      expect(await screen.findByText("You decide as leader.")).toBeVisible();
      expect(screen.getByTestId("decision-comment")).toHaveValue("");
      cleanup();
    }
    sessionStorage.clear();
  });

  it("asks why before it revokes, and names what that affects", async () => {
    const effective = ticketOf("effective", { clusters: [cluster("m1", "Realized"), cluster("m2", "Realized")], can: { ...nothing, revoke: true } });
    const { writes } = start(effective, { revoke: () => ({ body: ticketOf("revoking", {}, { version: 9, events: [...effective.events, event("revoke-requested", 5, { actor: bob })] }) }) });
    await userEvent.click(await screen.findByTestId("revoke-button"));
    expect(await screen.findByText("Affects m1 and m2.")).toBeVisible();
    await userEvent.click(screen.getByTestId("revoke-confirm"));
    expect(screen.getByText("Enter a reason.")).toBeVisible();
    expect(writes()).toEqual([]);
    await userEvent.type(screen.getByTestId("revoke-reason"), "Retired.");
    await userEvent.click(screen.getByTestId("revoke-confirm"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "revoking"));
    expect(writes().map((call) => [call.path, call.body])).toEqual([["/tickets/T-42/revoke", { reason: "Retired." }]]);
    expect(screen.getByTestId("toast")).toHaveTextContent("Revocation of T-42 is in progress");
    await waitFor(() => expect(screen.queryByTestId("revoke-confirm")).toBeNull());
  });

  it("lets the requester withdraw with a reason", async () => {
    const { writes } = start(ticketOf("pending", { can: { ...nothing, withdraw: true } }), { withdraw: () => ({ body: ticketOf("withdrawn", {}, { version: 4 }) }) });
    await userEvent.click(await screen.findByTestId("withdraw-button"));
    await userEvent.type(await screen.findByTestId("withdraw-reason"), "Not needed.");
    await userEvent.click(screen.getByTestId("withdraw-confirm"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "withdrawn"));
    expect(writes().map((call) => call.body)).toEqual([{ reason: "Not needed." }]);
  });

  const orders = { ...bobsCluster, id: "orders", title: "Orders" };
  const two = ticket({ items: [item({ can: decides }), item({ position: 1, resource: orders, can: decides })], can: decides });

  it("decides every item that waits, and says which", async () => {
    const { writes } = start(two, { decision: () => ({ body: { ...two, version: 4 } }) });
    expect(await screen.findByTestId("decision-bar")).toHaveTextContent(/reach Bob’s cluster .*reach Orders/);
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 3 }]));
  });

  it("decides about one selected item", async () => {
    const { writes } = start(two, { decision: () => ({ body: { ...two, version: 4 } }) });
    await userEvent.click(await screen.findByTestId("decision-about"));
    await userEvent.click(await screen.findByRole("option", { name: "Payments API to Orders" }));
    expect(screen.getByTestId("decision-bar")).not.toHaveTextContent("reach Bob’s cluster");
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 3, item: 1 }]));
  });

  it("revokes one item of several from its row", async () => {
    const can = { ...nothing, revoke: true };
    const granted = ticket({ state: "effective", items: [item({ state: "effective", can }), item({ position: 1, resource: orders, state: "effective", can })], can });
    const { writes } = start(granted, { revoke: () => ({ body: { ...granted, version: 4 } }) });
    await userEvent.click(await screen.findByTestId("item-revoke-1"));
    expect(await screen.findByText(/can then no longer reach Orders/)).toBeVisible();
    await userEvent.type(screen.getByTestId("revoke-reason"), "Retired.");
    await userEvent.click(screen.getByTestId("revoke-confirm"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ reason: "Retired.", item: 1 }]));
  });

  it("shows that a delegate decides", async () => {
    start(ticketOf("pending", { steps: [step("leader", "current", [bob])], can: decides }));
    expect(await screen.findByText("You decide as leader, as a delegate.")).toBeVisible();
  });

  it("shows that an approver who is not on call decides for a person who is", async () => {
    start(ticketOf("pending", { steps: [step("leader", "current", [bob, carol], { onCall: { schedule: "shop", tier: 1, people: [bob], fallback: false } })], can: decides }));
    expect(await screen.findByText("You decide as leader, as a delegate.")).toBeVisible();
  });

  it("shows that the person on call decides as themselves", async () => {
    start(ticketOf("pending", { steps: [step("leader", "current", [bob, carol], { onCall: { schedule: "shop", tier: 1, people: [carol], fallback: false } })], can: decides }));
    expect(await screen.findByText("You decide as leader.")).toBeVisible();
  });

  it("comments without deciding", async () => {
    const { writes } = start(decidable, { comments: () => ({ body: { ...decidable, version: 4 } }) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Which port?");
    await userEvent.click(screen.getByTestId("comment-only"));
    await waitFor(() => expect(writes().map((call) => [call.path, call.body])).toEqual([["/tickets/T-42/comments", { comment: "Which port?" }]]));
  });

  it("requests an extension with the previous reason", async () => {
    const effective = ticketOf("effective", { can: { ...nothing, extend: true } });
    const { calls } = start(effective);
    await userEvent.click(await screen.findByTestId("extend-button"));
    expect(await screen.findByTestId("extend-reason")).toHaveValue("Still needed. Checkout needs it.");
    await userEvent.click(screen.getByTestId("duration-90"));
    await userEvent.click(screen.getByTestId("extend-confirm"));
    await waitFor(() =>
      expect(calls.find((call) => call.path === "/tickets" && call.method === "POST")?.body).toEqual({
        kind: "extend", items: [{ target: { ticket: "T-42", item: 0 } }], reason: "Still needed. Checkout needs it.", durationSeconds: 7_776_000,
      }),
    );
  });

  it.each([
    ["confirms", "review-confirm", "", { confirm: true }],
    ["ends", "review-end", "Not an emergency.", { confirm: false, comment: "Not an emergency." }],
  ])("%s what went through broken glass", async (_, button, comment, want) => {
    const glass = ticketOf("effective", { review: step("security", "current", [carol]), can: { ...nothing, review: true } }, { breakGlass: true });
    const { writes } = start(glass, { review: () => ({ body: { ...glass, version: 4 } }) });
    await userEvent.click(await screen.findByTestId("review-button"));
    if (comment) await userEvent.type(await screen.findByTestId("review-comment"), comment);
    await userEvent.click(await screen.findByTestId(button));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([want]));
  });
});

describe("the review of broken glass", () => {
  it("is open again with its comment after a newer login", async () => {
    const glass = ticketOf("effective", { review: step("security", "current", [carol]), can: { ...nothing, review: true } }, { breakGlass: true });
    start(glass, { review: () => problem(403, "login-too-old") });
    await userEvent.click(await screen.findByTestId("review-button"));
    await userEvent.type(await screen.findByTestId("review-comment"), "Not an emergency.");
    await userEvent.click(screen.getByTestId("review-end"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    cleanup();
    const { writes } = start(glass, { review: () => ({ body: { ...glass, version: 4 } }) });
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("review-end"));
    await waitFor(() => expect(writes().map((call) => call.body)).toEqual([{ confirm: false, comment: "Not an emergency." }]));
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });
});

describe("the effect of a decision", () => {
  const effect = { available: true, since: "2026-11-06T10:00:00Z", until: "2026-11-20T10:00:00Z", newlyAllowed: [], newlyDenied: [], uncertain: [], allowed: { connections: 0, clients: 0 }, denied: { connections: 0, clients: 0 }, unchanged: 0, truncated: false };

  function show(of: Ticket, impact: (call: Call) => Answer) {
    serve({ "GET /me": () => ({ body: me({ person: carol }) }), "GET /tickets/T-42": () => ({ body: of }), "GET /tickets/T-42/impact": impact });
    renderPage(<TicketPage />, { path: "/tickets/:id", at: "/tickets/T-42" });
  }

  it("is reported as unknown when it could not be read, and read again on demand", async () => {
    let answer = problem(503, "unavailable");
    show(decidable, () => answer);
    expect(await screen.findByTestId("impact-unknown")).toHaveTextContent("is not known");
    answer = { body: effect };
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(await screen.findByTestId("impact-short")).toHaveTextContent("Cuts off no client that was seen in the last days.");
  });

  const can = { ...nothing, revoke: true };
  const granted = ticket({ state: "effective", items: [item({ state: "effective", can }), item({ position: 1, state: "effective", can })], can });

  it("names the whole ticket when one item of several is revoked", async () => {
    show(granted, () => ({ body: effect }));
    await userEvent.click(await screen.findByTestId("item-revoke-1"));
    expect(await screen.findByTestId("impact-short")).toBeVisible();
    expect(screen.getByTestId("revoke-impact")).toHaveTextContent("If all accesses of T-42 were revoked:");
  });

  it("of all items is shown without the name of the ticket", async () => {
    show(granted, () => ({ body: effect }));
    await userEvent.click(await screen.findByTestId("revoke-button"));
    expect(await screen.findByTestId("impact-short")).toBeVisible();
    expect(screen.getByTestId("revoke-impact")).not.toHaveTextContent("T-42");
  });

  it("of a revocation is reported as unknown when it could not be read", async () => {
    show(granted, () => problem(503, "unavailable"));
    await userEvent.click(await screen.findByTestId("revoke-button"));
    expect(await screen.findByTestId("impact-unknown")).toHaveTextContent("is not known");
  });
});

describe("the ticket", () => {
  it("says for each cluster how it stands, and what it waits for", async () => {
    start(ticketOf("applying", { clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable", { message: verbatim("m2 does not answer") })], waitingFor: ["m2"] }));
    expect(await screen.findByTestId("cluster-state-m1")).toHaveAttribute("data-value", "Realized");
    expect(screen.getByTestId("cluster-state-m2")).toHaveAttribute("data-value", "Unreachable");
    expect(screen.getByTestId("ticket-message")).toHaveTextContent("Waiting for m2");
  });

  it("says the same for one that is hidden as for one that is not there", async () => {
    serve({});
    renderPage(<TicketPage />, { path: "/tickets/:id", at: "/tickets/T-99" });
    expect(await screen.findByText("It does not exist, or you may not see it.")).toBeVisible();
  });
});
