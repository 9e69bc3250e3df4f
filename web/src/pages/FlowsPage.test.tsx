import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Connection } from "../api/types";
import { bob, connection, me } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Call } from "../testing/render";
import { FlowsPage } from "./FlowsPage";

const span = { available: true, since: "2026-11-20T10:00:00Z", until: "2026-11-21T10:00:00Z" };
const answers = {
  "GET /flows/series": () => ({ body: { ...span, stepSeconds: 720, points: [{ start: span.since, decision: "denied", count: 7 }, { start: span.since, decision: "allowed", count: 40 }] } }),
  "GET /flows/coverage": () => ({ body: { ...span, lastFlow: { m1: span.until }, items: [] } }),
};

function start(items: Connection[], at = "/flows", over: Parameters<typeof serve>[0] = {}) {
  const calls = serve({ ...answers, "GET /flows": () => ({ body: { ...span, lastFlow: span.until, items } }), ...over });
  return { calls, ...renderPage(<FlowsPage />, { path: "/flows", at }) };
}

const asked = (calls: Call[], path: string) => calls.filter((call) => call.path === path).at(-1)?.search;

describe("the explorer", () => {
  it("asks for what the address says", async () => {
    const { calls } = start([connection()], "/flows?window=1h&decision=denied&port=6379&q=redis");
    await screen.findByTestId("flow-table");
    for (const path of ["/flows", "/flows/series"]) {
      const search = asked(calls, path);
      expect([search?.getAll("decision"), search?.get("port"), search?.get("q"), search?.has("since"), search?.has("until")]).toEqual([["denied"], "6379", "redis", true, false]);
    }
  });

  it("lets the server sort by count once an application or a resource is named", async () => {
    const { calls, router } = start([connection(), connection({ port: 6380 })], "/flows?sort=-count", { "GET /flows": () => ({ body: { ...span, lastFlow: span.until, items: [connection(), connection({ port: 6380 })], nextCursor: "c2" } }) });
    await screen.findByTestId("flow-table");
    expect(asked(calls, "/flows")?.get("sort")).toBeNull();
    expect(screen.getByRole("columnheader", { name: "Connections" })).not.toHaveAttribute("aria-sort");
    await router.navigate("/flows?subject=app-888&sort=-count");
    await waitFor(() => expect(asked(calls, "/flows")?.get("sort")).toBe("-count"));
    expect(screen.getByRole("columnheader", { name: "Connections" })).toHaveAttribute("aria-sort", "descending");
    await userEvent.click(screen.getByRole("button", { name: "Last seen" }));
    await waitFor(() => expect(asked(calls, "/flows")?.get("sort")).toBe("seen"));
    expect(router.state.location.search).toBe("?subject=app-888&sort=seen");
  });

  it("narrows to a decision by its total, and takes it back", async () => {
    const { router } = start([connection()]);
    await userEvent.click(await screen.findByTestId("total-denied"));
    expect(router.state.location.search).toBe("?decision=denied");
    await userEvent.click(screen.getByTestId("total-denied"));
    expect(router.state.location.search).toBe("");
  });

  it("takes away one value of the filter", async () => {
    const { router } = start([connection()], "/flows?subject=app-888&port=6379");
    await userEvent.click(within(await screen.findByTestId("held-port")).getByRole("button"));
    expect(router.state.location.search).toBe("?subject=app-888");
  });

  it("opens the chain from the flow to those who approved it, and keeps it in the address", async () => {
    const { router } = start([connection({ decision: "allowed", verdict: "forwarded", policy: "redis", sid: "t-9-1", ticket: "T-9", ticketVisible: true, approvers: [bob] })]);
    await userEvent.click(await screen.findByTestId("flow-open"));
    const drawer = within(await screen.findByTestId("flow-drawer"));
    expect(drawer.getByTestId("chain-statement")).toHaveTextContent("t-9-1");
    expect(drawer.getByRole("link", { name: "T-9" })).toHaveAttribute("href", "/tickets/T-9");
    expect(drawer.getByTestId("chain-approvers")).toHaveTextContent("Bob Li");
    expect(drawer.getByTestId("narrow-statement")).toHaveAttribute("href", "/flows?policy=redis&sid=t-9-1");
    expect(router.state.location.search).toMatch(/^\?row=\w+$/);
  });

  it.each([
    ["security", "/access-policies/redis?sid=t-9-1", "/access-policies/redis"],
    ["resource-owner", null, null],
  ] as const)("leads from the flow to the statement and its policy: %s", async (role, statement, policy) => {
    start([connection({ decision: "allowed", verdict: "forwarded", policy: "redis", sid: "t-9-1" })], "/flows", { "GET /me": () => ({ body: me({ roles: [role] }) }) });
    await userEvent.click(await screen.findByTestId("flow-open"));
    const chain = within(await screen.findByTestId("chain-statement"));
    expect(chain.getByText("t-9-1").closest("a")?.getAttribute("href") ?? null).toBe(statement);
    expect(chain.getByText("redis").closest("a")?.getAttribute("href") ?? null).toBe(policy);
  });

  it("ends the chain where nobody may look further", async () => {
    start([connection({ decision: "allowed", sid: "t-9-1", policy: "redis", ticket: "T-9", ticketVisible: false })]);
    await userEvent.click(await screen.findByTestId("flow-open"));
    const drawer = within(await screen.findByTestId("flow-drawer"));
    expect(drawer.getByTestId("chain-ticket")).toHaveTextContent("T-9");
    expect(drawer.queryByRole("link", { name: "T-9" })).toBeNull();
  });

  it("says of a refused one what would have allowed it, and offers to ask", async () => {
    start([connection()]);
    await userEvent.click(await screen.findByTestId("flow-open"));
    const drawer = within(await screen.findByTestId("flow-drawer"));
    expect(drawer.getByTestId("chain-statement")).toHaveTextContent("No statement allows it");
    expect(drawer.queryByTestId("chain-ticket")).toBeNull();
    expect(drawer.getByTestId("request-access")).toBeVisible();
  });

  it("has only the rows near the window in the document when there are many", async () => {
    start(Array.from({ length: 500 }, (_, port) => connection({ port: port + 1 })));
    const table = await screen.findByTestId("flow-table");
    expect(table).toHaveAttribute("aria-rowcount", "501");
    expect(screen.queryAllByTestId("flow-row").length).toBeLessThan(100);
  });

  it("pages within the window of the first page", async () => {
    const { calls } = start([], "/flows", {
      "GET /flows": ({ search }) => ({ body: search.get("cursor") ? { ...span, items: [connection({ port: 2 })] } : { ...span, lastFlow: span.until, items: [connection({ port: 1 })], nextCursor: "next" } }),
    });
    await userEvent.click(await screen.findByTestId("load-more"));
    await waitFor(() => expect(screen.getAllByTestId("flow-row")).toHaveLength(2));
    const search = asked(calls, "/flows");
    expect([search?.get("cursor"), search?.get("since"), search?.get("until")]).toEqual(["next", span.since, span.until]);
  });
});

describe("what is missing", () => {
  const watched = (cluster: string, lost = 0) => [{ cluster, day: "2026-11-20", watchedSeconds: 50_400, lost, gapSeconds: 0 }, { cluster, day: "2026-11-21", watchedSeconds: 36_000, lost: 0, gapSeconds: 0 }];
  const covered = (items: ReturnType<typeof watched>, over: object = {}) => ({ "GET /flows/coverage": () => ({ body: { ...span, items, ...over } }) });
  const lossy = covered([...watched("m1"), ...watched("m2", 3)]);

  it("is said above the flows, with the way to it", async () => {
    start([connection()], "/flows?cluster=m2", lossy);
    expect(await screen.findByTestId("loss-banner")).toHaveTextContent("in m2, 3 flows were lost");
    expect(screen.getByRole("link", { name: "What is missing" })).toHaveAttribute("href", "/flows?cluster=m2&tab=losses");
  });

  it("of a member that is not looked at is not", async () => {
    start([connection()], "/flows?cluster=m1", lossy);
    await screen.findByTestId("flow-table");
    expect(screen.queryByTestId("loss-banner")).toBeNull();
  });

  it("contains the time in which members were not watched, also of a member that was not watched at all", async () => {
    start([connection()], "/flows", covered([...watched("m1").slice(0, 1)], { lastFlow: { m1: span.since, m2: "2026-11-18T10:00:00Z" } }));
    expect(await screen.findByTestId("loss-banner")).toHaveTextContent("in m1 and m2, no flows collected for up to 24 hr");
    await userEvent.click(screen.getByRole("link", { name: "What is missing" }));
    const [, m1, m2] = within(await screen.findByTestId("coverage")).getAllByRole("row");
    expect([m1?.textContent, m2?.textContent]).toEqual([expect.stringMatching(/^m1.*0%100%$/), expect.stringMatching(/^m2.*0%0%$/)]);
  });

  it("is unknown if it cannot be read, and if no member was watched", async () => {
    start([connection()], "/flows", { "GET /flows/coverage": () => problem(503, "unavailable") });
    expect(await screen.findByTestId("loss-unknown")).toHaveTextContent("could not be read");
    cleanup();
    start([connection()], "/flows", covered([]));
    expect(await screen.findByTestId("nothing-watched")).toBeVisible();
  });

  it("is not a topic without a flow store", async () => {
    start([], "/flows", { ...covered([], { available: false }), "GET /flows": () => ({ body: { ...span, available: false, items: [] } }) });
    await screen.findByTestId("flows-unavailable");
    for (const id of ["loss-banner", "loss-unknown", "nothing-watched"]) expect(screen.queryByTestId(id)).toBeNull();
  });
});

describe("without rows", () => {
  it.each([
    ["says that all agree", "/flows?disagree=true", {}, "In this window, the dataplane treated every connection as the policies require"],
    ["says that the filters match nothing", "/flows?q=nobody", {}, "No connection of this window matches"],
    ["says which single flows are kept, and where all are counted", "/flows?tab=raw&resource=bobs-cluster", { "GET /flows/raw": () => ({ body: { ...span, items: [] } }) }, "--flows"],
    ["says that the store is away", "/flows", { "GET /flows": () => ({ body: { ...span, available: false, items: [] } }) }, "connections"],
    ["says what went wrong", "/flows", { "GET /flows": () => problem(503, "store-unavailable") }, "Try again"],
  ] as const)("%s", async (_, at, over, want) => {
    start([], at, over);
    const state = await screen.findByTestId(/^(empty-state|flows-unavailable|error-state)$/);
    expect(state).toHaveTextContent(want);
  });
});
