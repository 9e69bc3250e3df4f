import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Delegation, Role } from "../api/types";
import { toLogin } from "../lib/session-end";
import { alice, bob, carol, me } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer } from "../testing/render";
import { DelegationsPage } from "./DelegationsPage";

const delegation = (over: Partial<Delegation> = {}): Delegation => ({
  id: "7",
  from: alice,
  to: carol,
  start: "2026-11-20T10:00:00Z",
  end: "2026-11-27T10:00:00Z",
  reason: "On leave.",
  active: true,
  canEnd: true,
  ...over,
});

function start(items: Delegation[], { at = "/delegations", roles = ["requester"], create }: { at?: string; roles?: Role[]; create?: () => Answer } = {}) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles, timeZone: "Asia/Shanghai" }) }),
    "GET /delegations": () => ({ body: { items } }),
    "GET /people": () => ({ body: { items: [bob, carol] } }),
    "GET /people/carol": () => ({ body: { person: carol, groups: [], owns: [] } }),
    "POST /delegations": create ?? (() => ({ status: 201, body: delegation() })),
    "DELETE /delegations/7": () => ({ status: 204, body: undefined }),
  });
  return { calls, ...renderPage(<DelegationsPage />, { path: "/delegations", at }) };
}

async function fill() {
  await userEvent.click(await screen.findByTestId("new-delegation"));
  await userEvent.click(await screen.findByTestId("delegate-to"));
  await userEvent.click(await screen.findByRole("option", { name: /Carol Wu/ }));
}

describe("the input of a delegation when a login is needed", () => {
  beforeEach(() => sessionStorage.clear());

  const tooOld = () => problem(403, "login-too-old");
  const reason = () => screen.findByTestId("delegate-reason");

  /** Leaves the page with a refused delegation, as the link to the login does. */
  async function refused() {
    const page = start([], { create: tooOld });
    await fill();
    await userEvent.type(await reason(), "On leave.");
    await userEvent.click(screen.getByTestId("delegate-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    return page;
  }

  it("is there after the login, and gone after it was sent", async () => {
    (await refused()).unmount();
    const { calls, unmount } = start([]);
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    expect(await reason()).toHaveValue("On leave.");
    await userEvent.click(screen.getByTestId("delegate-confirm"));
    await waitFor(() => expect(screen.queryByTestId("delegate-form")).toBeNull());
    expect(calls.find((call) => call.method === "POST")?.body).toMatchObject({ to: "carol", reason: "On leave." });
    expect(sessionStorage).toHaveLength(0);
    unmount();
    start([]);
    await screen.findByTestId("delegations-from-me");
    expect(screen.queryByTestId("delegate-form")).toBeNull();
  });

  it("is gone after it was cancelled, before and after the login", async () => {
    const { unmount } = await refused();
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    expect(sessionStorage).toHaveLength(0);
    unmount();
    (await refused()).unmount();
    start([]);
    await screen.findByTestId("dialog-restored");
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    expect(screen.queryByTestId("delegate-form")).toBeNull();
    expect(sessionStorage).toHaveLength(0);
    await userEvent.click(screen.getByTestId("new-delegation"));
    expect(await reason()).toHaveValue("");
    expect(screen.queryByTestId("dialog-restored")).toBeNull();
  });

  it("is there after the session ended", async () => {
    const { router, cache, unmount } = start([]);
    await fill();
    await userEvent.type(await reason(), "On leave.");
    act(() => toLogin(router, cache));
    await screen.findByText("elsewhere");
    unmount();
    start([]);
    expect(await reason()).toHaveValue("On leave.");
  });

  it("is for the same person at the same address only, and for an hour", async () => {
    (await refused()).unmount();
    const stored = JSON.parse(sessionStorage.getItem("acp-dialog-draft") ?? "{}") as Record<string, unknown>;
    for (const other of [{ person: "bob" }, { address: "/delegations?scope=all" }, { dialog: "token" }, { savedAt: Date.now() - 3_600_000 }, { values: { to: 7 } }]) {
      sessionStorage.setItem("acp-dialog-draft", JSON.stringify({ ...stored, ...other }));
      const { unmount } = start([]);
      await screen.findByTestId("delegations-from-me");
      expect(screen.queryByTestId("delegate-form")).toBeNull();
      unmount();
    }
  });
});

describe("delegations", () => {
  it("separates given from received delegations", async () => {
    start([delegation(), delegation({ id: "8", from: bob, to: alice, active: false, endedAt: "2026-11-21T10:00:00Z", canEnd: false })]);
    expect(await within(await screen.findByTestId("delegations-from-me")).findByTestId("delegation-7")).toHaveTextContent("Carol Wu");
    const taken = within(screen.getByTestId("delegations-to-me"));
    expect(taken.getByTestId("delegation-8")).toHaveTextContent("Bob Li");
    expect(taken.getByTestId("delegation-state")).toHaveAttribute("data-value", "ended");
    expect(taken.queryByTestId("end-8")).toBeNull();
  });

  it("says what it is for when there is none", async () => {
    start([]);
    expect(await screen.findByText(/You have no delegate/)).toBeVisible();
  });

  it("sends who, from when until when, and why, once", async () => {
    const { calls } = start([]);
    await fill();
    await userEvent.type(screen.getByTestId("delegate-reason"), "On leave.");
    await userEvent.click(screen.getByTestId("delegate-confirm"));
    await waitFor(() => expect(screen.queryByTestId("delegate-form")).toBeNull());
    const sent = calls.filter((call) => call.method === "POST");
    expect(sent).toHaveLength(1);
    const body = sent[0]?.body as { to: string; start: string; end: string; reason: string };
    expect([body.to, body.reason, Date.parse(body.end) - Date.parse(body.start)]).toEqual(["carol", "On leave.", 7 * 86_400_000]);
    expect(sent[0]?.headers.get("Idempotency-Key")).toMatch(/^[0-9a-f]{32}$/);
  });

  it("marks what is missing and sends nothing", async () => {
    const { calls } = start([]);
    await userEvent.click(await screen.findByTestId("new-delegation"));
    await userEvent.click(await screen.findByTestId("delegate-confirm"));
    expect(await screen.findByText("Choose a person.")).toBeVisible();
    expect(screen.getByText("Enter a reason.")).toBeVisible();
    expect(calls.some((call) => call.method === "POST")).toBe(false);
  });

  it("shows the server's refusal at its field", async () => {
    start([], { create: () => problem(422, "invalid", { fields: [{ field: "end", message: verbatim("A delegation lasts at most 90 days.") }] }) });
    await fill();
    await userEvent.type(screen.getByTestId("delegate-reason"), "x");
    await userEvent.click(screen.getByTestId("delegate-confirm"));
    expect(await screen.findByText("A delegation lasts at most 90 days.")).toBeVisible();
  });

  it("ends one after asking", async () => {
    const { calls } = start([delegation()]);
    await userEvent.click(await screen.findByTestId("end-7"));
    await userEvent.click(await screen.findByTestId("end-delegation-confirm"));
    await waitFor(() => expect(calls.some((call) => call.method === "DELETE" && call.path === "/delegations/7")).toBe(true));
    await waitFor(() => expect(screen.queryByTestId("end-delegation-confirm")).toBeNull());
  });

  it("shows everybody's only to those who oversee, and lets auditors change nothing", async () => {
    const { calls } = start([delegation({ from: bob, to: carol, canEnd: false })], { at: "/delegations?scope=all", roles: ["auditor"] });
    expect(await screen.findByTestId("delegation-7")).toHaveTextContent("Bob Li");
    expect(screen.queryByTestId("new-delegation")).toBeNull();
    expect(calls.find((call) => call.path === "/delegations" && call.search.get("all") === "true")).toBeDefined();
  });

  it("does not read all delegations for a requester, whatever the address contains", async () => {
    const { calls } = start([], { at: "/delegations?scope=all" });
    await screen.findByTestId("delegations-from-me");
    expect(calls.filter((call) => call.path === "/delegations").map((call) => call.search.get("all"))).toEqual([null]);
  });

  it("offers to try again when it cannot be read", async () => {
    serve({ "GET /delegations": () => problem(503, "unavailable") });
    renderPage(<DelegationsPage />, { path: "/delegations", at: "/delegations" });
    expect(await screen.findByRole("button", { name: "Try again" })).toBeVisible();
  });
});
