import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Ticket } from "../api/types";
import { TicketPage } from "../pages/TicketPage";
import { bob, carol, cluster, event, step, ticket } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";

const nothing = { approve: false, reject: false, withdraw: false, revoke: false };

/** A server that holds one ticket and changes it as the handler says. */
function start(first: Ticket, write: Record<string, (call: Call) => Answer> = {}) {
  let current = first;
  const keep = (answer: Answer) => {
    if ((answer.status ?? 200) < 400) current = answer.body as Ticket;
    return answer;
  };
  const calls = serve({
    "GET /tickets/T-42": () => ({ body: current }),
    ...Object.fromEntries(Object.entries(write).map(([operation, handler]) => [`POST /tickets/T-42/${operation}`, (call: Call) => keep(handler(call))])),
  });
  renderPage(<TicketPage />, { path: "/tickets/:id", at: "/tickets/T-42" });
  return { calls, writes: () => calls.filter((call) => call.method === "POST"), set: (next: Ticket) => (current = next) };
}

const decidable = ticket({ can: { ...nothing, approve: true, reject: true } });

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
    const { writes } = start(decidable, { decision: () => ({ body: ticket({ version: 4, steps: [step("leader", "approved", [carol]), step("owner", "current", [bob])] }) }) });
    await userEvent.click(await screen.findByTestId("approve-button"));
    await waitFor(() => expect(screen.getByTestId("timeline-step-owner")).toHaveAttribute("data-value", "current"));
    expect(writes().map((call) => call.body)).toEqual([{ decision: "approve", version: 3 }]);
    expect(screen.queryByTestId("decision-bar")).toBeNull();
  });

  it("does not reject without a comment", async () => {
    const { writes } = start(decidable, { decision: () => ({ body: ticket({ version: 4, state: "rejected" }) }) });
    await userEvent.click(await screen.findByTestId("reject-button"));
    expect(screen.getByText("Say why. Alice Zhang reads it.")).toBeVisible();
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
    set(ticket({ version: 4, state: "rejected", steps: [step("leader", "rejected", [carol])], can: nothing }));
    await userEvent.click(screen.getByTestId("approve-button"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "rejected"));
  });

  it("asks why before it revokes, and names what that affects", async () => {
    const effective = ticket({ state: "effective", clusters: [cluster("m1", "Realized"), cluster("m2", "Realized")], can: { ...nothing, revoke: true } });
    const { writes } = start(effective, { revoke: () => ({ body: { ...effective, state: "revoking", version: 9, can: nothing, events: [...effective.events, event("revoke-requested", 5, { actor: bob })] } }) });
    await userEvent.click(await screen.findByTestId("revoke-button"));
    expect(await screen.findByText("Affects m1 and m2.")).toBeVisible();
    await userEvent.click(screen.getByTestId("revoke-confirm"));
    expect(screen.getByText("Give a reason.")).toBeVisible();
    expect(writes()).toEqual([]);
    await userEvent.type(screen.getByTestId("revoke-reason"), "Retired.");
    await userEvent.click(screen.getByTestId("revoke-confirm"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "revoking"));
    expect(writes().map((call) => [call.path, call.body])).toEqual([["/tickets/T-42/revoke", { reason: "Retired." }]]);
    expect(screen.getByTestId("toast")).toHaveTextContent("Revocation of T-42 is under way");
    await waitFor(() => expect(screen.queryByTestId("revoke-confirm")).toBeNull());
  });

  it("lets the requester withdraw with a reason", async () => {
    const { writes } = start(ticket({ can: { ...nothing, withdraw: true } }), { withdraw: () => ({ body: ticket({ state: "withdrawn", version: 4 }) }) });
    await userEvent.click(await screen.findByTestId("withdraw-button"));
    await userEvent.type(await screen.findByTestId("withdraw-reason"), "Not needed.");
    await userEvent.click(screen.getByTestId("withdraw-confirm"));
    await waitFor(() => expect(screen.getByTestId("ticket-state")).toHaveAttribute("data-value", "withdrawn"));
    expect(writes().map((call) => call.body)).toEqual([{ reason: "Not needed." }]);
  });
});

describe("the ticket", () => {
  it("says for each cluster how it stands, and what it waits for", async () => {
    start(ticket({ state: "applying", clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable", { message: "m2 does not answer" })], waitingFor: ["m2"] }));
    expect(await screen.findByTestId("cluster-state-m1")).toHaveAttribute("data-value", "Realized");
    expect(screen.getByTestId("cluster-state-m2")).toHaveAttribute("data-value", "Unreachable");
    expect(screen.getByTestId("ticket-message")).toHaveTextContent("Waits for m2");
  });

  it("says the same for one that is hidden as for one that is not there", async () => {
    serve({});
    renderPage(<TicketPage />, { path: "/tickets/:id", at: "/tickets/T-99" });
    expect(await screen.findByText("It does not exist, or you may not see it.")).toBeVisible();
  });
});
