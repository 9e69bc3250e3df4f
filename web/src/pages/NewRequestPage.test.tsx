import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { app888, application, bob, bobsCluster, carol, connection, resource, step, ticket } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { NewRequestPage } from "./NewRequestPage";

const preview = { steps: [step("leader", "waiting", [carol]), step("owner", "waiting", [bob])], existing: [], denied24h: 1284, statement: "sid: t-1-1\neffect: Allow\n" };

function start(at: string, over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({
    "GET /applications": () => ({ body: { items: [application(), application({ id: "app-777", title: "Ledger batch", name: "trnv1:rsc:trip-com:iam:sa:app/777" })] } }),
    "GET /resources": () => ({ body: { items: [resource({ id: "orders-cache", title: "Orders cache", name: "trnv1:rsc:trip-com:redis:clusters:orders-cache" }), resource()] } }),
    "GET /resources/bobs-cluster": () => ({ body: resource() }),
    "GET /applications/app-888/connections": () => ({ body: { items: [connection()], available: true, since: "2026-11-19T10:00:00Z" } }),
    "POST /tickets/preview": () => ({ body: preview }),
    "POST /tickets": () => ({ status: 201, body: ticket({ id: "T-46" }) }),
    ...over,
  });
  return { calls, ...renderPage(<NewRequestPage />, { path: "/requests/new", at }) };
}

const prefilled = `/requests/new?application=${app888.id}&resource=${bobsCluster.id}`;
const posted = (calls: Call[]) => calls.filter((call) => call.method === "POST" && call.path === "/tickets");

describe("a new request", () => {
  it("names every missing field and sends nothing", async () => {
    const { calls } = start("/requests/new");
    await userEvent.click(await screen.findByTestId("submit-request"));
    for (const text of ["Choose an application.", "Choose a resource.", "Choose at least one action.", "Say why the application needs this."]) expect(screen.getByText(text)).toBeVisible();
    expect(posted(calls)).toEqual([]);
  });

  it("takes application and resource from the link, and the only action", async () => {
    start(prefilled);
    expect(await screen.findByRole("checkbox", { name: /redis:connect/ })).toBeChecked();
    await waitFor(() => expect(screen.getByTestId("select-application")).toHaveValue("Payments API"));
    expect(screen.getByTestId("select-resource")).toHaveValue("Bob’s cluster");
  });

  it("shows who decides before anything is submitted", async () => {
    const { calls } = start(prefilled);
    const panel = within(await screen.findByTestId("preview"));
    expect(await panel.findByText("Carol Wu")).toBeVisible();
    expect(panel.getByText("Bob Li")).toBeVisible();
    expect(panel.getByTestId("preview-denied")).toHaveTextContent("1,284 connections were refused");
    expect(posted(calls)).toEqual([]);
  });

  it("puts what was refused lately first", async () => {
    start(`/requests/new?application=${app888.id}`);
    await userEvent.click(await screen.findByTestId("select-resource"));
    await screen.findByText("Refused in the last 24 hours");
    await screen.findByRole("option", { name: /Orders cache/ });
    expect(screen.getAllByRole("option").map((option) => option.textContent)).toEqual(["Bob’s clusterredis / bobs-cluster", "Orders cacheredis / orders-cache"]);
  });

  it("submits once and opens the ticket", async () => {
    const { calls, router } = start(prefilled);
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    await userEvent.click(screen.getByRole("radio", { name: "7 days" }));
    await userEvent.type(screen.getByTestId("request-reason"), "Checkout needs it.");
    await userEvent.click(screen.getByTestId("submit-request"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-46"));
    const [call, ...more] = posted(calls);
    expect(more).toEqual([]);
    expect(call?.body).toEqual({ items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }], reason: "Checkout needs it.", durationSeconds: 604_800 });
    expect(call?.headers.get("X-ACP-Request")).toBe("1");
    expect(call?.headers.get("Idempotency-Key")).toMatch(/^[0-9a-f]{32}$/);
  });

  it("keeps the key for a retry, and takes another for another request", async () => {
    const { calls } = start(prefilled, { "POST /tickets": () => problem(503, "unavailable") });
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    const reason = screen.getByTestId("request-reason");
    const submit = screen.getByTestId("submit-request");
    await userEvent.type(reason, "one");
    await userEvent.click(submit);
    await screen.findByText(/A part of ACP is not available now/);
    expect(reason).toHaveValue("one");
    await userEvent.click(submit);
    await waitFor(() => expect(posted(calls)).toHaveLength(2));
    await userEvent.type(reason, " more");
    await userEvent.click(submit);
    await waitFor(() => expect(posted(calls)).toHaveLength(3));
    const keys = posted(calls).map((call) => call.headers.get("Idempotency-Key"));
    expect(keys[0]).toBe(keys[1]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("shows the server’s word at the field it is about", async () => {
    start(prefilled, { "POST /tickets": () => problem(400, "invalid", { fields: [{ field: "items[0].actions[0]", message: "redis:connect is not an action of this class any more" }] }) });
    await screen.findByRole("checkbox", { name: /redis:connect/ });
    await userEvent.type(screen.getByTestId("request-reason"), "x");
    await userEvent.click(screen.getByTestId("submit-request"));
    expect(await screen.findByText("redis:connect is not an action of this class any more")).toBeVisible();
  });

  it("leads to the ticket that already asks for the same", async () => {
    start(prefilled, { "POST /tickets/preview": () => ({ body: { ...preview, duplicate: "T-44" } }) });
    const notice = within(await screen.findByTestId("preview-duplicate"));
    expect(notice.getByRole("link")).toHaveAttribute("href", "/tickets/T-44");
  });

  it("says why a resource without a class cannot be asked for", async () => {
    start(prefilled, { "GET /resources/bobs-cluster": () => ({ body: resource({ class: undefined, actions: [] }) }) });
    expect(await screen.findByText(/No resource class covers this resource/)).toBeVisible();
  });
});
