import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Impact, TrafficMap } from "../api/types";
import { app888, bobsCluster, me } from "../testing/fixtures";
import { problem, renderPage, serve, unanswered, verbatim } from "../testing/render";
import { TrafficMapPage } from "./TrafficMapPage";

const map: TrafficMap = {
  available: true,
  since: "2026-11-19T12:00:00Z",
  until: "2026-11-20T12:00:00Z",
  lastFlow: "2026-11-20T11:59:00Z",
  teams: [
    { kind: "group", id: "payments", displayName: "Payments" },
    { kind: "person", id: "bob", displayName: "Bob Li" },
  ],
  nodes: [
    { ...app888, kind: "application", team: 0 },
    { name: "app/2", title: "Billing", id: "app-2", kind: "application", team: 0 },
    { ...bobsCluster, kind: "resource", team: 1 },
  ],
  links: [
    { from: 0, to: 2, allowed: 1_200, lastSeen: "2026-11-20T10:00:00Z", lastUsed: "2026-11-20T10:00:00Z", granted: true, policy: "portal-redis", sid: "t-1-1", ticket: "T-1" },
    { from: 1, to: 2, defaultDenied: 7, lastSeen: "2026-11-20T11:00:00Z" },
  ],
  total: 2,
  cut: false,
};

const impact = {
  available: true, since: "2026-11-06T12:00:00Z", until: "2026-11-20T12:00:00Z", allowed: { connections: 7, clients: 1 }, denied: { connections: 1_200, clients: 1 }, unchanged: 0, truncated: false, uncertain: [],
  newlyDenied: [{ subject: app888, resource: bobsCluster, port: 6379, protocol: "TCP", count: 1_200, firstSeen: "2026-11-10T12:00:00Z", lastSeen: "2026-11-20T10:00:00Z", before: "allowed", after: "default-denied" }],
  newlyAllowed: [{ subject: { name: "app/2", title: "Billing" }, resource: bobsCluster, port: 6379, protocol: "TCP", count: 7, firstSeen: "2026-11-10T12:00:00Z", lastSeen: "2026-11-20T11:00:00Z", before: "default-denied", after: "allowed" }],
} satisfies Impact;

function start(at = "/traffic", over: Partial<TrafficMap> = {}, roles: ("requester" | "security")[] = ["requester"], drafted: ReturnType<typeof problem> = { body: impact }) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /flows/map": () => ({ body: { ...map, ...over } }),
    "GET /flows/coverage": () => ({ body: { available: true, items: [], since: map.since, until: map.until, lastFlow: { m1: map.lastFlow } } }),
    "GET /tickets/T-1/impact": () => ({ body: impact }),
    "GET /tickets/T-9/impact": () => problem(404, "not-found"),
    "POST /flows/impact": () => drafted,
    "GET /resources/bobs-cluster/proposal": () => ({ body: { resource: bobsCluster, since: map.since, until: map.until, lines: [{}], unattributed: [], yaml: "spec: {}" } }),
  });
  const { router } = renderPage(<TrafficMapPage />, { path: "/traffic", at });
  return { calls, router };
}

const searchOf = (router: { state: { location: { search: string } } }) => new URLSearchParams(router.state.location.search);

describe("the traffic map", () => {
  it("draws a year, and says that losses and changes are about its last 31 days", async () => {
    const until = new Date().toISOString();
    const { calls } = start("/traffic?window=365d&ticket=T-1", { since: new Date(Date.now() - 365 * 86_400_000).toISOString(), until });
    await screen.findByTestId("traffic-picture");
    expect(screen.getByTestId("traffic-long")).toHaveTextContent("only for the last 31 days");
    const since = (path: string) => Date.now() - Date.parse(calls.find((each) => each.path === path)?.search.get("since") ?? "");
    expect(since("/flows/map")).toBeCloseTo(365 * 86_400_000, -5);
    expect(since("/flows/coverage")).toBeCloseTo(31 * 86_400_000, -5);
    await waitFor(() => expect(since("/tickets/T-1/impact")).toBeCloseTo(31 * 86_400_000, -5));
    expect(screen.getByRole("link", { name: "All flows as a list" })).toHaveAttribute("href", "/flows?window=31d");
  });

  it("says what to do if the store needs too long", async () => {
    start("/traffic?window=365d", { available: false, links: [], message: verbatim("Choose a shorter period.") });
    expect(await screen.findByTestId("flows-unavailable")).toHaveTextContent("Choose a shorter period.");
  });

  it("asks for the period and the filters of the address, and for nothing else", async () => {
    const { calls } = start("/traffic?window=7d&subject=app-888&cluster=m1&q=redis&decision=denied&level=resource");
    await screen.findByTestId("traffic-picture");
    const asked = calls.find(({ path }) => path === "/flows/map")?.search;
    expect([...(asked?.keys() ?? [])].sort()).toEqual(["cluster", "q", "since", "subject"]);
    expect(Date.now() - Date.parse(asked?.get("since") ?? "")).toBeCloseTo(7 * 86_400_000, -5);
  });

  it("has a picture, and a table with the same numbers", async () => {
    const { router } = start("/traffic?level=resource");
    expect(await screen.findByRole("application", { name: /2 applications or teams, 1 resources or teams, 2 links/ })).toBeVisible();
    await userEvent.click(within(screen.getByTestId("traffic-view")).getByText("Table"));
    const rows = await screen.findAllByTestId("traffic-row");
    expect(rows).toHaveLength(2);
    const used = within(rows.find((row) => row.textContent.includes(app888.title)) ?? document.body);
    expect(used.getByText("1,200")).toBeVisible();
    expect(used.getByText("granted, used")).toBeVisible();
    expect(used.getByRole("link", { name: app888.title })).toHaveAttribute("href", "/applications/app-888");
    const refused = within(rows.find((row) => row.textContent.includes("Billing")) ?? document.body);
    expect(refused.getByText("7")).toBeVisible();
    expect(refused.getByText("not granted")).toBeVisible();
    expect(searchOf(router).get("view")).toBe("table");
    const csv = new URL(screen.getByTestId("traffic-csv").getAttribute("href") ?? "", "http://here");
    expect([csv.pathname, csv.searchParams.get("format")]).toEqual(["/api/v1/flows/map", "csv"]);
  });

  it("is read line by line with the keyboard, which opens the details with their flows and ticket", async () => {
    const { router } = start("/traffic?level=resource&window=7d");
    const picture = await screen.findByTestId("traffic-picture");
    picture.focus();
    await userEvent.keyboard("{Home}");
    const first = screen.getByTestId("traffic-spoken").textContent;
    await userEvent.keyboard("{ArrowDown}");
    const second = screen.getByTestId("traffic-spoken").textContent;
    expect([first, second].sort()).toEqual(["Billing to Bob’s cluster: refused 7; not granted.", "Payments API to Bob’s cluster: allowed 1,200; granted, used."]);
    if (!second.startsWith("Payments")) await userEvent.keyboard("{ArrowUp}");
    await userEvent.keyboard("{Enter}");
    const panel = within(await screen.findByTestId("traffic-panel"));
    expect(panel.getByRole("link", { name: "T-1" })).toHaveAttribute("href", "/tickets/T-1");
    const flows = new URL(panel.getByTestId("traffic-flows").getAttribute("href") ?? "", "http://here");
    expect([flows.pathname, ...flows.searchParams]).toEqual(["/flows", ["window", "7d"], ["subject", app888.name], ["resource", bobsCluster.name]]);
    expect(searchOf(router).get("from")).toBe(app888.name);
    picture.focus();
    await userEvent.keyboard("{Escape}");
    await waitFor(() => expect(screen.queryByTestId("traffic-panel")).toBeNull());
  });

  it("offers to request what was refused, and to unfold teams", async () => {
    const { router } = start(`/traffic?level=resource&from=app%2F2&to=${encodeURIComponent(bobsCluster.name)}`);
    const panel = within(await screen.findByTestId("traffic-panel"));
    expect(await panel.findByTestId("request-access")).toHaveAttribute("href", "/requests/new?application=app-2&resource=bobs-cluster");
    await userEvent.click(within(screen.getByTestId("traffic-level")).getByText("Team"));
    await waitFor(() => expect(searchOf(router).get("level")).toBeNull());
    screen.getByTestId("traffic-picture").focus();
    await userEvent.keyboard("{Home}{Enter}");
    await userEvent.click(await screen.findByTestId("traffic-unfold"));
    await waitFor(() => expect(searchOf(router).getAll("open").sort()).toEqual(["c:group:payments", "s:person:bob"]));
    expect(screen.getByTestId("traffic-picture")).toHaveAccessibleName(/2 applications or teams, 1 resources/);
  });

  it("hides and shows kinds of traffic, with the number of links of each", async () => {
    const { router } = start("/traffic?level=resource");
    const refused = await screen.findByTestId("traffic-kind-refused");
    expect(refused).toHaveTextContent("refused 1");
    expect(refused).toHaveAttribute("aria-pressed", "true");
    await userEvent.click(refused);
    expect(searchOf(router).getAll("hide")).toEqual(["refused"]);
    expect(screen.getByTestId("traffic-picture")).toHaveAccessibleName(/1 applications or teams, 1 resources or teams, 1 links/);
    await userEvent.click(screen.getByTestId("traffic-kind-allowed"));
    await userEvent.click(await screen.findByTestId("traffic-clear"));
    expect(screen.getByTestId("traffic-picture")).toHaveAccessibleName(/2 links/);
  });

  it("finds a name, and shows only its links", async () => {
    const { router, calls } = start();
    await userEvent.click(await screen.findByTestId("traffic-find"));
    await userEvent.click(await screen.findByRole("option", { name: "Billing" }));
    await waitFor(() => expect(calls.some(({ path, search }) => path === "/flows/map" && search.get("subject") === "app/2")).toBe(true));
    expect(screen.getByTestId("traffic-focus")).toHaveTextContent("Only connections of Billing");
    await userEvent.click(screen.getByTestId("traffic-unfocus"));
    await waitFor(() => expect(searchOf(router).has("subject")).toBe(false));
  });

  it("says in one sentence what a ticket would cut or let in, and marks the lines", async () => {
    const { router } = start("/traffic?level=resource&ticket=T-1&view=table");
    await waitFor(() => expect(screen.getByTestId("overlay-sentence")).toHaveTextContent("T-1: this 1 link would be cut, and 1 would be newly allowed"));
    const rows = await screen.findAllByTestId("traffic-row");
    expect(rows.find((row) => row.textContent.includes(app888.title))).toHaveTextContent("would be cut");
    expect(rows.find((row) => row.textContent.includes("Billing"))).toHaveTextContent("would be newly allowed");
    await userEvent.click(screen.getByTestId("overlay-remove"));
    await waitFor(() => expect(searchOf(router).has("ticket")).toBe(false));
    expect(screen.queryByTestId("traffic-overlay")).toBeNull();
  });

  it("lays a drafted policy over the map, over the period of the map, and keeps it out of the address", async () => {
    const { router, calls } = start("/traffic?level=resource");
    await userEvent.click(await screen.findByTestId("overlay-open"));
    await userEvent.click(await screen.findByTestId("overlay-draft"));
    await userEvent.paste("statements: []");
    await userEvent.click(screen.getByTestId("overlay-draft-show"));
    await waitFor(() => expect(screen.getByTestId("overlay-sentence")).toHaveTextContent("The drafted policy: this 1 link would be cut, and 1 would be newly allowed"));
    expect(calls.find(({ path }) => path === "/flows/impact")?.body).toEqual({ policy: "statements: []", since: map.since, until: map.until });
    expect(router.state.location.search).not.toContain("statements");
    await userEvent.click(screen.getByTestId("overlay-remove"));
    await waitFor(() => expect(searchOf(router).has("draft")).toBe(false));
    sessionStorage.clear();
  });

  it("names what is wrong with a draft", async () => {
    sessionStorage.setItem("acp.traffic-draft", "x: 1");
    start("/traffic?draft=1", {}, ["requester"], problem(422, "invalid", { fields: [{ field: "policy", code: "invalid", message: verbatim("cannot be read") }] }));
    await waitFor(() => expect(screen.getByTestId("overlay-wrong")).toHaveTextContent("The drafted policy cannot be read"));
    sessionStorage.clear();
  });

  it("names the ticket that cannot be read", async () => {
    start("/traffic?ticket=T-9");
    await waitFor(() => expect(screen.getByTestId("traffic-overlay")).toHaveTextContent(/T-9.*does not exist/));
  });

  it("says that the draft of another tab is not here", async () => {
    start("/traffic?draft=1");
    await waitFor(() => expect(screen.getByTestId("overlay-sentence")).toHaveTextContent("paste it again"));
  });

  it("lays the proposal for a resource over the map, with its enforcement", async () => {
    const { calls } = start("/traffic?level=resource&proposal=bobs-cluster");
    await waitFor(() => expect(screen.getByTestId("overlay-sentence")).toHaveTextContent("with the proposed grants: this 1 link would be cut"));
    expect(calls.find(({ path }) => path === "/flows/impact")?.body).toEqual({ policy: "spec: {}", enforce: ["bobs-cluster"], since: map.since, until: map.until });
  });

  it("does not lay the answer about one resource over the map for another", async () => {
    const calls = serve({
      "GET /flows/map": () => ({ body: map }),
      "GET /flows/coverage": () => ({ body: { available: true, items: [], since: map.since, until: map.until } }),
      "GET /resources/bobs-cluster/proposal": () => ({ body: { resource: bobsCluster, since: map.since, until: map.until, lines: [{}], unattributed: [], yaml: "spec: {}" } }),
      "GET /resources/other/proposal": unanswered,
      "POST /flows/impact": () => ({ body: impact }),
      "POST /tickets/impact": ({ body }) => ((body as { items: { resource: string }[] }).items[0]?.resource === "bobs-cluster" ? { body: impact } : unanswered()),
    });
    const { router } = renderPage(<TrafficMapPage />, { path: "/traffic", at: "/traffic?proposal=bobs-cluster" });
    const sentence = async (text: string) => waitFor(() => expect(screen.getByTestId("overlay-sentence")).toHaveTextContent(text));
    await sentence("would be cut");
    await router.navigate("/traffic?proposal=other");
    await sentence("replaying the connections");
    expect(calls.filter(({ path }) => path === "/flows/impact").map(({ body }) => (body as { enforce: string[] }).enforce)).toEqual([["bobs-cluster"]]);
    await router.navigate("/traffic?enforce=bobs-cluster");
    await sentence("would be cut");
    await router.navigate("/traffic?enforce=other");
    await sentence("replaying the connections");
  });

  it("says that flows cannot be read, and draws nothing that would look unused", async () => {
    start("/traffic", { available: false, nodes: [], links: [], teams: [], total: 0 });
    expect(await screen.findByTestId("flows-unavailable")).toBeVisible();
    expect(screen.queryByTestId("traffic-graph")).toBeNull();
  });

  it("says that nothing was seen, and that not everything is drawn", async () => {
    start("/traffic", { nodes: [], links: [], teams: [], total: 0 });
    expect(await screen.findByTestId("traffic-empty")).toHaveTextContent("Choose a longer period");
    start("/traffic", { cut: true, total: 30_000 });
    expect(await screen.findByTestId("traffic-cut")).toHaveTextContent("Only 2 of 30,000 links");
  });

  it("offers to try again when it cannot be read", async () => {
    serve({ "GET /flows/map": () => problem(503, "unavailable"), "GET /flows/coverage": () => problem(503, "unavailable") });
    renderPage(<TrafficMapPage />, { path: "/traffic", at: "/traffic" });
    expect(await screen.findByRole("button", { name: "Try again" })).toBeVisible();
  });

  it("links the access map only for people who may see it", async () => {
    start("/traffic", {}, ["security"]);
    expect(await screen.findByRole("link", { name: "Access map" })).toHaveAttribute("href", "/access");
  });
});
