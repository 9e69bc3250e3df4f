import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { app888, application, bobsCluster, connection, me, ticket } from "../testing/fixtures";
import { renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { HomePage } from "./HomePage";

function start(over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({
    "GET /applications": () => ({ body: { items: [application({ denied24h: 20 })] } }),
    "GET /tickets": ({ search }) => ({ body: { items: search.get("view") === "all" ? [ticket()] : [] } }),
    "GET /applications/app-888/connections": () => ({
      body: { items: [connection(), connection({ cluster: "m2" }), connection({ action: undefined, port: 9121 })], available: true, since: "2026-11-19T10:00:00Z", lastFlow: "2026-11-20T10:00:00Z" },
    }),
    ...over,
  });
  return { calls, ...renderPage(<HomePage />, { path: "/", at: "/" }) };
}

describe("home", () => {
  it("offers each refused access once, and says why the rest cannot be asked for", async () => {
    start();
    const rows = (await screen.findAllByTestId("connection-row")).map((row) => within(row));
    await screen.findByTestId("request-access");
    expect(rows.map((row) => row.queryAllByTestId("request-access").length)).toEqual([1, 0]);
    expect(rows.map((row) => row.queryAllByTestId("cannot-ask").length)).toEqual([0, 1]);
    expect(screen.getByTestId("new-request")).toBeVisible();
  });

  it("does not offer what was granted since", async () => {
    const grant = { effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], policy: "p", sid: "t-42-1", ticket: "T-42", counting: true };
    start({ "GET /applications/app-888/access": () => ({ body: { items: [grant] } }) });
    expect(await screen.findByTestId("granted")).toHaveTextContent("Granted since by T-42");
    expect(screen.queryByTestId("request-access")).toBeNull();
  });

  it("shows an auditor what everybody asked for, and nothing to ask for", async () => {
    const { calls } = start({ "GET /me": () => ({ body: me({ roles: ["auditor"] }) }) });
    expect(await within(await screen.findByTestId("latest")).findByTestId("ticket-row-T-42")).toBeVisible();
    expect(screen.queryByTestId("new-request")).toBeNull();
    expect(screen.queryByTestId("waits-for-me")).toBeNull();
    expect(calls.some((call) => call.path === "/tickets" && call.search.get("view") === "all")).toBe(true);
  });
});
