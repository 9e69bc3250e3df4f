import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { keys } from "../api/keys";
import { TicketPage } from "../pages/TicketPage";
import { carol, me, nothing, ticket, ticketOf } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";

function start(over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({ "GET /tickets/T-42": () => ({ body: ticket() }), "GET /tickets/T-43": () => ({ body: ticket({ id: "T-43" }) }), ...over });
  return { calls, ...renderPage(<TicketPage />, { path: "/tickets/:id", at: "/tickets/T-42" }) };
}

const sent = (calls: Call[]) => calls.filter(({ method }) => method === "POST");

describe("a comment that is being typed", () => {
  it("is kept while another tab is open", async () => {
    start();
    await userEvent.type(await screen.findByTestId("comment-text"), "Any news?");
    await userEvent.click(screen.getByTestId("tab-change"));
    await waitFor(() => expect(screen.queryByTestId("comment-text")).toBeNull());
    await userEvent.click(screen.getByRole("tab", { name: "Timeline" }));
    expect(await screen.findByTestId("comment-text")).toHaveValue("Any news?");
  });

  it("is not shown on another ticket that a link leads to", async () => {
    const { router, cache } = start();
    // A ticket that was read before is shown at once.
    cache.setQueryData(keys.ticket.one("T-43"), ticket({ id: "T-43" }));
    await userEvent.type(await screen.findByTestId("comment-text"), "Any news?");
    await act(() => router.navigate("/tickets/T-43"));
    await screen.findByTestId("ticket-T-43");
    expect(screen.getByTestId("comment-text")).toHaveValue("");
  });

  it("moves to the field of the decision when the ticket begins to wait for the person, and back", async () => {
    const decidable = ticketOf("pending", { can: { ...nothing, approve: true, reject: true } });
    const { cache } = start({ "GET /me": () => ({ body: me({ person: carol }) }), "GET /tickets/T-42": () => ({ body: decidable }) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Which port?");
    act(() => void cache.setQueryData(keys.ticket.one("T-42"), ticketOf("rejected", {}, { version: 4 })));
    expect(await screen.findByTestId("comment-text")).toHaveValue("Which port?");
    act(() => void cache.setQueryData(keys.ticket.one("T-42"), decidable));
    expect(await screen.findByTestId("decision-comment")).toHaveValue("Which port?");
  });
});

describe("a comment that is sent", () => {
  it("keeps its key until it was added, so that a retry does not add it twice", async () => {
    let refusals = 1;
    const { calls } = start({ "POST /tickets/T-42/comments": () => (refusals-- > 0 ? problem(503, "unavailable") : { body: ticket({ version: 4 }) }) });
    const send = async (text: string) => {
      if (text) await userEvent.type(await screen.findByTestId("comment-text"), text);
      const before = sent(calls).length;
      await userEvent.click(screen.getByTestId("comment-send"));
      await waitFor(() => expect(sent(calls)).toHaveLength(before + 1));
    };
    await send("Any news?");
    await screen.findByTestId("error-state");
    await send("");
    await waitFor(() => expect(screen.getByTestId("comment-text")).toHaveValue(""));
    await send("Any news?");
    await waitFor(() => expect(screen.getByTestId("comment-text")).toHaveValue(""));
    const [first, retry, again] = sent(calls).map(({ headers }) => headers.get("Idempotency-Key"));
    expect(first).toBeTruthy();
    expect(retry).toBe(first);
    expect(again).toBeTruthy();
    expect(again).not.toBe(first);
  });

  it("from the field of the decision has a key, too", async () => {
    const { calls } = start({
      "GET /tickets/T-42": () => ({ body: ticketOf("pending", { can: { ...nothing, approve: true, reject: true } }) }),
      "POST /tickets/T-42/comments": () => ({ body: ticket({ version: 4 }) }),
    });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Which port?");
    await userEvent.click(screen.getByTestId("comment-only"));
    await waitFor(() => expect(sent(calls).map(({ headers }) => headers.get("Idempotency-Key"))).toEqual([expect.stringMatching(/./)]));
  });
});
