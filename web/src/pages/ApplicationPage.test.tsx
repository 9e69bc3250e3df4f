import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Access, Connection } from "../api/types";
import { app888, application, bobsCluster, cluster, connection, me } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { ApplicationPage } from "./ApplicationPage";

const grant: Access = {
  effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], policy: "portal-x", sid: "t-42-1",
  ticket: "T-42", ticketVisible: true, canRevoke: false, counting: true, clusters: [cluster("m1", "Realized"), cluster("m2", "Pending")],
};

const list = (items: Connection[]): Answer => ({ body: { items, available: true, since: "2026-11-19T10:00:00Z", lastFlow: "2026-11-20T10:00:00Z" } });

function start(over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({
    "GET /applications/app-888": () => ({ body: application() }),
    "GET /applications/app-888/access": () => ({ body: { items: [grant] } }),
    "GET /applications/app-888/connections": () => list([connection()]),
    "GET /tickets": () => ({ body: { items: [] } }),
    ...over,
  });
  return { calls, ...renderPage(<ApplicationPage />, { path: "/applications/:id", at: "/applications/app-888" }) };
}

/** A statement that is there and has no effect gives nothing. */
const nothingGranted = { "GET /applications/app-888/access": () => ({ body: { items: [{ ...grant, counting: false }] } }) };

describe("an application", () => {
  it("says what it can reach, by which ticket, and how far in each cluster", async () => {
    start();
    const row = within(await screen.findByTestId("access-row-t-42-1"));
    expect(row.getByRole("link", { name: "T-42" })).toHaveAttribute("href", "/tickets/T-42");
    expect(row.getByText("m2 pending")).toHaveAttribute("data-value", "Pending");
    expect(row.queryByText("Revoke")).toBeNull();
  });

  it("says when a statement has no effect, and does not link a hidden ticket", async () => {
    start({ "GET /applications/app-888/access": () => ({ body: { items: [{ ...grant, counting: false, ticketVisible: false }] } }) });
    const row = within(await screen.findByTestId("access-row-t-42-1"));
    expect(row.getByText("no effect now")).toBeVisible();
    expect(row.queryByRole("link", { name: "T-42" })).toBeNull();
  });

  it("says since when its ticket gives it, and nothing where that is not known", async () => {
    start({
      "GET /applications/app-888/access": () => ({ body: { items: [{ ...grant, since: "2026-11-20T10:00:00.123Z" }, { ...grant, ticket: undefined, policy: "by-hand", sid: "base" }] } }),
    });
    const row = within(await screen.findByTestId("access-row-t-42-1"));
    expect(row.getByRole("time")).toHaveAttribute("dateTime", "2026-11-20T10:00:00.123Z");
    expect(within(screen.getByTestId("access-row-base")).queryByRole("time")).toBeNull();
  });

  it("says when the access was last used and why it was given, and leads to its connections", async () => {
    start({
      "GET /applications/app-888/access": () => ({ body: { items: [{ ...grant, reason: "the new cache" }, { ...grant, sid: "t-43-1", ticket: "T-43" }, { ...grant, sid: "t-44-1", ticket: "T-44" }] } }),
      "GET /applications/app-888/access/uses": () => ({
        body: { items: [{ policy: grant.policy, sid: grant.sid, subject: app888.name, resource: bobsCluster.name, state: "used", lastUsed: "2026-11-20T10:00:00Z" }, { policy: grant.policy, sid: "t-43-1", subject: app888.name, resource: bobsCluster.name, state: "unused" }], since: "2025-11-20T10:00:00Z", available: true },
      }),
    });
    const row = within(await screen.findByTestId("access-row-t-42-1"));
    expect(row.getByText("the new cache")).toBeVisible();
    const used = await row.findByRole("time");
    expect(used).toHaveAttribute("dateTime", "2026-11-20T10:00:00Z");
    expect(used.closest("a")).toHaveAttribute("href", "/flows?subject=app-888&resource=bobs-cluster&window=31d");
    expect(within(screen.getByTestId("access-row-t-43-1")).getByText("not used")).toBeVisible();
    expect(within(screen.getByTestId("access-row-t-44-1")).getByText("not known")).toBeVisible();
  });

  it("does not say that access was not used while the flows cannot be read", async () => {
    start({ "GET /applications/app-888/access/uses": () => ({ body: { items: [], since: "2025-11-20T10:00:00Z", available: false } }) });
    const row = within(await screen.findByTestId("access-row-t-42-1"));
    expect(row.getByText("not known")).toBeVisible();
    expect(row.queryByText("not used")).toBeNull();
  });

  it("shows the grant instead of asking for what is there already", async () => {
    start();
    const granted = within(await screen.findByTestId("granted"));
    expect(granted.getByRole("link", { name: "T-42" })).toHaveAttribute("href", "/tickets/T-42");
    expect(granted.getByText("m2 pending")).toBeVisible();
    expect(granted.queryByText("m1")).toBeNull();
    expect(within(screen.getByTestId("connection-row")).queryByTestId("request-access")).toBeNull();
  });

  it("offers to request exactly what was refused", async () => {
    start(nothingGranted);
    const row = within(await screen.findByTestId("connection-row"));
    expect(row.getByTestId("decision-badge")).toHaveAttribute("data-value", "default-denied");
    expect(await row.findByTestId("request-access")).toHaveAttribute("href", "/requests/new?application=app-888&resource=bobs-cluster&action=redis%3Aconnect");
  });

  it("offers nothing for a port that belongs to no action", async () => {
    start({ "GET /applications/app-888/connections": () => list([connection({ action: undefined, port: 9121 })]) });
    const row = within(await screen.findByTestId("connection-row"));
    expect(row.queryByTestId("request-access")).toBeNull();
    expect(row.getByTestId("cannot-ask")).toHaveTextContent("No action of this resource covers this port");
  });

  it("offers it once for all clusters, and says quietly what was let through", async () => {
    start({ ...nothingGranted, "GET /applications/app-888/connections": () => list([connection({ count: 5 }), connection({ cluster: "m2", count: 2 }), connection({ cluster: "m2", verdict: "forwarded", count: 3 })]) });
    const row = within(await screen.findByTestId("connection-row"));
    expect(await row.findAllByTestId("request-access")).toHaveLength(1);
    expect(row.getByText("10")).toBeVisible();
    expect(row.getByText("m1, m2")).toHaveAttribute("title", "m1: 5\nm2: 5");
    expect(row.getByTestId("let-through")).toHaveTextContent("3 of them let through");
  });

  it.each([
    ["an auditor", { "GET /me": () => ({ body: me({ roles: ["auditor"] }) }) }],
    ["who does not own it", { "GET /applications/app-888": () => ({ body: application({ mine: false }) }) }],
  ])("offers nothing to %s", async (_, over) => {
    start({ ...nothingGranted, ...over });
    await screen.findByTestId("connection-row");
    await screen.findByTestId("access-row-t-42-1");
    expect(screen.queryByTestId("request-access")).toBeNull();
  });

  it("reads refused connections first, and all on demand", async () => {
    const { calls } = start();
    await screen.findByTestId("connection-row");
    await userEvent.click(screen.getByRole("radio", { name: "All" }));
    await screen.findByText("Connections", { selector: "h2" });
    await screen.findByTestId("connection-row");
    const asked = calls.filter((call) => call.path.endsWith("/connections")).map((call) => call.search.getAll("decision"));
    expect(asked).toEqual([["denied", "default-denied"], []]);
  });

  it("does not call it nothing when the flows cannot be read", async () => {
    start({ "GET /applications/app-888/connections": () => ({ body: { items: [], available: false, since: "2026-11-19T10:00:00Z" } }) });
    expect(await screen.findByTestId("flows-unavailable")).toBeVisible();
    expect(screen.queryByText("Nothing was refused in the last 24 hours.")).toBeNull();
  });

  it("keeps its other parts when one is forbidden", async () => {
    start({ "GET /applications/app-888/access": () => problem(403, "forbidden") });
    const section = within(await screen.findByTestId("access"));
    expect(await section.findByText(/You may not see or do this/)).toBeVisible();
    expect(await screen.findByTestId("connection-row")).toBeVisible();
  });
});
