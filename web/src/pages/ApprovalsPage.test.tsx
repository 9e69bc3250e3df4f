import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { keys } from "../api/keys";
import { toLogin } from "../lib/session-end";
import { nothing, ticketOf } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { ApprovalsPage } from "./ApprovalsPage";

const can = { ...nothing, approve: true, reject: true };
const waiting = ["T-1", "T-2", "T-3"].map((id, index) => ticketOf("pending", { can }, { id, version: index + 1 }));

function start(at: string, items = waiting, over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({ "GET /tickets": () => ({ body: { items } }), ...Object.fromEntries(waiting.map((each) => [`GET /tickets/${each.id}`, () => ({ body: each })])), ...over });
  return { calls, ...renderPage(<ApprovalsPage />, { path: "/approvals", at }) };
}

describe("approvals", () => {
  it("opens the first one", async () => {
    start("/approvals");
    expect(await screen.findByTestId("ticket-T-1")).toBeVisible();
    expect(screen.getByTestId("approval-T-1")).toHaveAttribute("aria-current", "true");
  });

  it.each([
    ["a newer request arrives", [ticketOf("pending", { can }, { id: "T-9" }), ...waiting]],
    ["another person decided the open one", waiting.slice(1)],
    ["another person decided the only one", []],
  ])("keeps the first one open when %s", async (_, later) => {
    let items = waiting;
    const { cache, router } = start("/approvals", waiting, { "GET /tickets": () => ({ body: { items } }) });
    await userEvent.type(await screen.findByTestId("decision-comment"), "Fine");
    items = later;
    await act(() => cache.invalidateQueries({ queryKey: keys.ticket.lists }));
    await waitFor(() => expect(screen.queryAllByTestId(/^approval-T-/)).toHaveLength(later.length));
    expect(screen.getByTestId("ticket-T-1")).toBeVisible();
    expect(screen.getByTestId("decision-comment")).toHaveValue("Fine");
    // On a narrow screen the list is shown until the person chooses, so the address stays as it is.
    expect(router.state.location.search).toBe("");
  });

  it("keeps the first one open when more of the list is read", async () => {
    let items = waiting.slice(0, 2);
    const { cache } = start("/approvals", waiting, { "GET /tickets": ({ search }) => ({ body: search.get("cursor") ? { items: waiting.slice(2) } : { items, nextCursor: "c2" } }) });
    await screen.findByTestId("ticket-T-1");
    items = [ticketOf("pending", { can }, { id: "T-9" }), ...waiting.slice(0, 2)];
    await act(() => cache.invalidateQueries({ queryKey: keys.ticket.lists }));
    await screen.findByTestId("approval-T-9");
    await userEvent.click(screen.getByTestId("load-more"));
    await screen.findByTestId("approval-T-3");
    expect(screen.getByTestId("ticket-T-1")).toBeVisible();
  });

  it("opens the first one of another filter, and the new first one when the person returns to the list", async () => {
    let items = waiting;
    const { cache, router } = start("/approvals", waiting, { "GET /tickets": ({ search }) => ({ body: { items: search.get("q") ? waiting.slice(2) : items } }) });
    await screen.findByTestId("ticket-T-1");
    await act(() => router.navigate("/approvals?q=x"));
    expect(await screen.findByTestId("ticket-T-3")).toBeVisible();
    await act(() => router.navigate("/approvals?ticket=T-1"));
    await screen.findByTestId("ticket-T-1");
    items = waiting.slice(1);
    await act(() => cache.invalidateQueries({ queryKey: keys.ticket.lists }));
    expect(screen.getByTestId("ticket-T-1")).toBeVisible();
    await act(() => router.navigate("/approvals"));
    expect(await screen.findByTestId("ticket-T-2")).toBeVisible();
  });

  it("walks with j and k, and stops at the ends", async () => {
    const { router } = start("/approvals");
    await screen.findByTestId("ticket-T-1");
    const press = async (keys: string, want: string) => {
      await userEvent.keyboard(keys);
      await waitFor(() => expect(router.state.location.search).toBe(`?ticket=${want}`));
      await screen.findByTestId(`ticket-${want}`);
    };
    await press("j", "T-2");
    await press("j", "T-3");
    await press("j", "T-3");
    await press("k", "T-2");
    await press("k", "T-1");
    await press("k", "T-1");
  });

  it("moves the focus with a to Approve, r to Reject and c to the comment, without deciding", async () => {
    const { calls } = start("/approvals?ticket=T-2");
    await screen.findByTestId("approve-button");
    await userEvent.keyboard("a");
    expect(screen.getByTestId("approve-button")).toHaveFocus();
    await userEvent.keyboard("r");
    expect(screen.getByTestId("reject-button")).toHaveFocus();
    await userEvent.keyboard("c");
    expect(screen.getByTestId("decision-comment")).toHaveFocus();
    expect(calls.filter((call) => call.method === "POST")).toEqual([]);
  });

  it("says its keys", async () => {
    start("/approvals");
    await screen.findByTestId("ticket-T-1");
    await userEvent.keyboard("?");
    expect(await screen.findByTestId("keys-help")).toHaveTextContent("next request");
  });

  it("decides about several: says what first, and what became of each afterwards", async () => {
    const { calls } = start("/approvals", waiting, {
      "POST /tickets/decisions": () => ({ body: { items: [{ ticket: "T-1", ok: true, state: "approved" }, { ticket: "T-2", ok: false, problem: { type: "about:blank", title: "stale", status: 409, code: "stale" } }] } }),
    });
    await screen.findByTestId("ticket-T-1");
    await userEvent.keyboard("x");
    await userEvent.click(screen.getByTestId("select-T-2"));
    expect(screen.getByTestId("selection")).toHaveTextContent("2 selected");
    // The box that was just ticked does not take the letters.
    await userEvent.keyboard("a");
    expect(await screen.findByTestId("bulk-summary")).toHaveTextContent(/T-1.*Lets Payments API reach Bob’s cluster.*T-2/);
    expect(screen.getByText("Approve 2 items?")).toBeVisible();
    await userEvent.click(screen.getByTestId("bulk-confirm"));
    expect(await screen.findByTestId("result-T-2")).toHaveTextContent("It changed since you opened it.");
    expect(screen.getByTestId("result-T-1")).toHaveAttribute("data-value", "ok");
    expect(calls.filter((call) => call.method === "POST").map((call) => call.body)).toEqual([{ decision: "approve", items: [{ ticket: "T-1", version: 1 }, { ticket: "T-2", version: 2 }] }]);
    await userEvent.click(screen.getByTestId("bulk-close"));
    expect(screen.queryByTestId("selection")).toBeNull();
  });

  it("selects all that are loaded, and decides more of them than one call may have", async () => {
    const many = Array.from({ length: 105 }, (_, i) => ({ ...waiting[0], id: `T-${i + 1}` }) as (typeof waiting)[number]);
    const { calls } = start("/approvals", many, {
      "POST /tickets/decisions": ({ body }) => ({ body: { items: (body as { items: { ticket: string }[] }).items.map(({ ticket }) => ({ ticket, ok: true, state: "approved" })) } }),
    });
    await userEvent.click(await screen.findByTestId("select-all"));
    expect(screen.getByTestId("selection")).toHaveTextContent("105 selected");
    await userEvent.click(screen.getByTestId("bulk-approve"));
    await userEvent.click(await screen.findByTestId("bulk-confirm"));
    await waitFor(() => expect(screen.getAllByTestId(/^result-T-/)).toHaveLength(105));
    const sent = calls.filter((call) => call.method === "POST").map((call) => (call.body as { items: unknown[] }).items.length);
    expect(sent).toEqual([100, 5]);
  });

  it("rejects several only with a comment", async () => {
    const { calls } = start("/approvals", waiting, { "POST /tickets/decisions": () => problem(503, "unavailable") });
    await userEvent.click(await screen.findByTestId("select-T-1"));
    await userEvent.click(screen.getByTestId("bulk-reject"));
    await userEvent.click(await screen.findByTestId("bulk-confirm"));
    expect(screen.getByText("Enter a reason.")).toBeVisible();
    expect(calls.filter((call) => call.method === "POST")).toEqual([]);
  });

  it("keeps the selection and the comment while the person logs in again", async () => {
    const first = start("/approvals?ticket=T-2");
    await userEvent.click(await screen.findByTestId("select-T-1"));
    await userEvent.click(screen.getByTestId("select-T-3"));
    await userEvent.click(screen.getByTestId("bulk-reject"));
    await userEvent.type(await screen.findByTestId("bulk-comment"), "Not ours.");
    act(() => toLogin(first.router, first.cache));
    await screen.findByText("elsewhere");
    first.unmount();

    // T-3 was decided by another person in the meantime.
    const { calls } = start("/approvals?ticket=T-2", waiting.slice(0, 2), { "POST /tickets/decisions": () => ({ body: { items: [{ ticket: "T-1", ok: true, state: "rejected" }] } }) });
    expect(await screen.findByTestId("bulk-comment")).toHaveValue("Not ours.");
    expect(screen.getByTestId("dialog-restored")).toBeVisible();
    expect(within(screen.getByTestId("bulk-summary")).queryByText(/T-3/)).toBeNull();
    await userEvent.click(screen.getByTestId("bulk-confirm"));
    await userEvent.click(await screen.findByTestId("bulk-close"));
    expect(calls.filter((call) => call.method === "POST").map((call) => call.body)).toEqual([{ decision: "reject", items: [{ ticket: "T-1", version: 1 }], comment: "Not ours." }]);
    expect(screen.queryByTestId("selection")).toBeNull();
    expect(sessionStorage.getItem("acp-dialog-draft")).toBeNull();
  });

  it("continues after the login with the tickets that needed it", async () => {
    const first = start("/approvals", waiting, {
      "POST /tickets/decisions": () => ({ body: { items: [{ ticket: "T-1", ok: true, state: "approved" }, { ticket: "T-3", ok: false, problem: problem(403, "login-too-old").body }] } }),
    });
    await userEvent.click(await screen.findByTestId("select-T-1"));
    await userEvent.click(screen.getByTestId("select-T-3"));
    await userEvent.click(screen.getByTestId("bulk-approve"));
    await userEvent.click(await screen.findByTestId("bulk-confirm"));
    expect(within(await screen.findByTestId("result-T-3")).getByTestId("login-again")).toBeVisible();
    first.unmount();

    const { calls } = start("/approvals", waiting, { "POST /tickets/decisions": () => ({ body: { items: [{ ticket: "T-3", ok: true, state: "approved" }] } }) });
    const summary = within(await screen.findByTestId("bulk-summary"));
    expect([summary.queryByText(/T-1/), summary.queryByText(/T-3/) === null]).toEqual([null, false]);
    await userEvent.click(screen.getByTestId("bulk-confirm"));
    await userEvent.click(await screen.findByTestId("bulk-close"));
    expect(calls.find((call) => call.method === "POST")?.body).toEqual({ decision: "approve", items: [{ ticket: "T-3", version: 3 }] });
    expect(sessionStorage.getItem("acp-dialog-draft")).toBeNull();
  });

  it("says after the login that nothing is left to decide, and forgets the input when it is cancelled", async () => {
    const first = start("/approvals");
    await userEvent.click(await screen.findByTestId("select-T-3"));
    await userEvent.click(screen.getByTestId("bulk-approve"));
    await userEvent.type(await screen.findByTestId("bulk-comment"), "ok");
    act(() => toLogin(first.router, first.cache));
    await screen.findByText("elsewhere");
    first.unmount();
    const second = start("/approvals", waiting.slice(0, 2));
    expect(await screen.findByText("None of the selected requests is waiting for your decision any more.")).toBeVisible();
    expect(screen.getByTestId("bulk-confirm")).toBeDisabled();
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    second.unmount();
    start("/approvals", waiting.slice(0, 2));
    await screen.findByTestId("ticket-T-1");
    expect(screen.queryByTestId("bulk-dialog")).toBeNull();
  });

  it("filters as the address says, and keeps the filter while it walks", async () => {
    const { calls, router } = start("/approvals?kind=grant&q=pay");
    await screen.findByTestId("ticket-T-1");
    const search = calls.find((call) => call.path === "/tickets")?.search;
    expect([search?.getAll("kind"), search?.get("q")]).toEqual([["grant"], "pay"]);
    await userEvent.keyboard("j");
    await waitFor(() => expect(router.state.location.search).toBe("?kind=grant&q=pay&ticket=T-2"));
  });

  it("leaves the letters alone while someone types", async () => {
    const { router } = start("/approvals?ticket=T-2");
    await userEvent.type(await screen.findByTestId("decision-comment"), "just ok");
    expect(screen.getByTestId("decision-comment")).toHaveValue("just ok");
    expect(router.state.location.search).toBe("?ticket=T-2");
  });

  it("shows that no request is waiting", async () => {
    start("/approvals", []);
    expect(await screen.findByTestId("approvals-empty")).toHaveTextContent("No request is waiting for your decision.");
  });
});
