import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { AccessEdge, AccessGraph, PolicyDetail } from "../api/types";
import { app888, application, bobsCluster, me, resource } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import { AccessMapPage } from "./AccessMapPage";
import { AccessPoliciesPage } from "./AccessPoliciesPage";
import { AccessPolicyPage } from "./AccessPolicyPage";

const governor = { "GET /me": () => ({ body: me({ roles: ["auditor"] }) }) };
const edge: AccessEdge = {
  subject: app888,
  subjectKind: "application",
  subjectTeams: [{ kind: "group", id: "payments", displayName: "Payments" }],
  resource: bobsCluster,
  resourceTeams: [],
  wildcard: false,
  class: "redis",
  mode: "Enforce",
  effect: "Allow",
  actions: ["redis:connect"],
  policy: "portal-redis",
  sid: "t-1-1",
  origin: { kind: "portal" },
  ticket: "T-1",
  counting: true,
  ticketVisible: true,
  reason: "the new checkout",
  use: "used",
  lastUsed: "2026-11-20T10:00:00Z",
};
const graph: AccessGraph = {
  nodes: [
    { ...app888, kind: "application", teams: [0] },
    { ...bobsCluster, kind: "resource", mode: "Enforce" },
  ],
  links: [{ from: 0, to: 1, statements: 1, allow: true, counting: true }],
  teams: [{ kind: "group", id: "payments", displayName: "Payments" }],
  total: 1,
  cut: false,
};

function start(at = "/access", over: Partial<AccessGraph> = {}, answers: Parameters<typeof serve>[0] = {}) {
  const calls = serve({
    ...governor,
    "GET /access/graph": () => ({ body: { ...graph, ...over } }),
    "GET /access": () => ({ body: { items: [edge], total: 1, flowsAvailable: true } }),
    "GET /classes": () => ({ body: { items: [] } }),
    "GET /applications": () => ({ body: { items: [application()] } }),
    "GET /resources": () => ({ body: { items: [resource()] } }),
    "GET /applications/app-888": () => ({ body: application() }),
    "GET /resources/bobs-cluster": () => ({ body: resource() }),
    "GET /access/path": () => ({ body: { from: app888, to: bobsCluster, decisions: [{ cluster: "", action: "redis:connect", mode: "Enforce", decision: "allowed", policy: "portal-redis", sid: "t-1-1" }], direct: [edge], against: [], chains: [], cut: false, flowsAvailable: true } }),
    ...answers,
  });
  const { router } = renderPage(<AccessMapPage />, { path: "/access", at });
  return { calls, router };
}

describe("the access map", () => {
  it("has a picture and a table of the same selection", async () => {
    const { calls, router } = start();
    expect(await screen.findByRole("img", { name: /1 clients, 1 servers, 1 connections/ })).toBeVisible();
    const table = within(await screen.findByTestId("access-table"));
    expect(table.getByRole("link", { name: app888.title })).toHaveAttribute("href", "/applications/app-888");
    expect(table.getByRole("link", { name: "T-1" })).toHaveAttribute("href", "/tickets/T-1");
    await userEvent.click(screen.getByTestId("graph-find"));
    await userEvent.click(await screen.findByRole("option", { name: "Payments" }));
    await waitFor(() => expect(router.state.location.search).toBe("?team=group%3Apayments&level=application"));
    for (const path of ["/access", "/access/graph"]) await waitFor(() => expect(calls.some((call) => call.path === path && call.search.get("team") === "group:payments")).toBe(true));
    expect(screen.getByTestId("access-focus")).toHaveTextContent("Only connections of Payments");
    await userEvent.click(screen.getByTestId("access-unfocus"));
    await waitFor(() => expect(router.state.location.search).toBe(""));
  });

  it("keeps its filters in the address and ignores what is none", async () => {
    const { calls } = start("/access?q=redis&mode=Enforce&mode=Loud&origin=kubectl&expires=7&broad=true&level=resource&effect=x");
    await screen.findByTestId("access-table");
    const asked = calls.find(({ path }) => path === "/access/graph")?.search;
    expect([...(asked ?? [])].sort()).toEqual([["broad", "true"], ["expiresWithinDays", "7"], ["mode", "Enforce"], ["origin", "kubectl"], ["q", "redis"]]);
  });

  it("is moved and zoomed by keys without losing itself", async () => {
    start();
    const picture = await screen.findByTestId("graph-picture");
    picture.focus();
    const fitted = Number(picture.dataset.scale);
    await userEvent.keyboard("{ArrowDown}{ArrowRight}+");
    expect(Number(picture.dataset.scale)).toBeGreaterThan(fitted);
    await userEvent.keyboard("0");
    expect(Number(picture.dataset.scale)).toBe(fitted);
    expect(picture).toHaveFocus();
  });

  it("says that not everything is drawn", async () => {
    start("/access", { cut: true, total: 30_000 });
    expect(await screen.findByTestId("graph-cut")).toHaveTextContent("the first 1 of 30,000 connections");
  });

  it("answers how one can reach another", async () => {
    const { calls } = start("/access?from=app-888&to=bobs-cluster");
    expect(await screen.findByTestId("path-decisions")).toHaveTextContent("redis:connect");
    expect(within(screen.getByTestId("path-finder")).getByText("There is no indirect path.")).toBeVisible();
    const asked = calls.find(({ path }) => path === "/access/path")?.search;
    expect([asked?.get("from"), asked?.get("to")]).toEqual(["app-888", "bobs-cluster"]);
    const row = within(screen.getByTestId("path-edges"));
    expect(row.getByText("the new checkout")).toBeVisible();
    expect(row.getByTestId("last-use")).toHaveAttribute("data-value", "used");
  });

  it("says why each access was given and when it was last used, and of what was not watched that this is not known", async () => {
    const rows: AccessEdge[] = [
      edge,
      { ...edge, sid: "t-2-1", ticket: "T-2", ticketVisible: false, reason: undefined, use: "unused", lastUsed: undefined },
      { ...edge, sid: "base", ticket: undefined, reason: undefined, use: "unknown", lastUsed: undefined },
    ];
    start("/access", {}, { "GET /access": () => ({ body: { items: rows, total: 3, flowsAvailable: true } }) });
    const table = within(await screen.findByTestId("access-table"));
    expect(table.getAllByTestId("last-use").map((each) => [each.dataset.value, each.textContent])).toEqual([["used", expect.any(String)], ["unused", "not used"], ["unknown", "not known"]]);
    expect(table.getByRole("time").closest("a")).toHaveAttribute("href", "/flows?subject=app-888&resource=bobs-cluster&window=31d");
    expect(table.getByText("the new checkout")).toBeVisible();
    expect(table.getByText("hidden")).toBeVisible();
    expect(table.queryByRole("link", { name: "T-2" })).toBeNull();
  });

  it("says of no access that it was not used while the flows cannot be read", async () => {
    start("/access", {}, { "GET /access": () => ({ body: { items: [{ ...edge, use: "unknown", lastUsed: undefined }], total: 1, flowsAvailable: false } }) });
    expect(await screen.findByTestId("flows-unavailable")).toBeVisible();
    expect(screen.getByTestId("last-use")).toHaveAttribute("data-value", "unavailable");
  });

  it("lets the server sort by last use once a client or a resource is named", async () => {
    const { calls, router } = start("/access?sort=used", {}, { "GET /access": () => ({ body: { items: [edge, { ...edge, sid: "two" }], total: 200, nextCursor: "c2", flowsAvailable: true } }) });
    await screen.findByTestId("access-table");
    expect(calls.find(({ path }) => path === "/access")?.search.get("sort")).toBeNull();
    await router.navigate("/access?resource=bobs-cluster&sort=used");
    await waitFor(() => expect(calls.some(({ path, search }) => path === "/access" && search.get("sort") === "used")).toBe(true));
    expect(screen.getByRole("columnheader", { name: "Last used" })).toHaveAttribute("aria-sort", "ascending");
  });
});

describe("access policies", () => {
  const noUses = { "GET /policies/wide/uses": () => ({ body: { items: [], since: "2025-11-20T10:00:00Z", available: false } }) };

  it("are listed with origin and issues, which narrow the list", async () => {
    const calls = serve({
      ...governor,
      "GET /policies": () => ({ body: { items: [{ name: "wide", origin: { kind: "gitops", manager: "Flux" }, statements: 3, issues: { refused: 1 }, accepted: false, message: verbatim("no"), resources: [bobsCluster], resourcesTotal: 4 }], issues: { refused: 1 }, total: 1, unusedKnown: false } }),
    });
    renderPage(<AccessPoliciesPage />, { path: "/access-policies", at: "/access-policies" });
    const row = within(await screen.findByTestId("acp-wide"));
    for (const text of ["GitOps", "Flux", "not accepted", "1 refused", "and 3 more"]) expect(row.getByText(text)).toBeVisible();
    expect(screen.getByTestId("unused-unknown")).toBeVisible();
    await userEvent.click(screen.getByTestId("issue-refused"));
    await waitFor(() => expect(calls.some(({ path, search }) => path === "/policies" && search.get("issue") === "refused")).toBe(true));
  });

  it("offer to try again", async () => {
    serve({ ...governor, "GET /policies": () => problem(503, "unavailable") });
    renderPage(<AccessPoliciesPage />, { path: "/access-policies", at: "/access-policies" });
    expect(await screen.findByRole("button", { name: "Try again" })).toBeVisible();
  });

  it("have each statement with what is odd about it, and their YAML when it is opened", async () => {
    const detail: PolicyDetail = {
      policy: { name: "wide", origin: { kind: "kubectl", manager: "kubectl-apply" }, statements: 1, issues: { redundant: 1 }, accepted: true },
      statements: [{ sid: "one", effect: "Deny", subjects: [app888], actions: ["redis:connect"], resources: [bobsCluster], issues: [{ kind: "redundant", message: verbatim("it is covered by x/y: remove it"), others: [{ policy: "x", sid: "y" }] }] }],
      managers: [{ name: "kubectl-apply", operation: "Apply" }],
      unusedKnown: true,
      yaml: "kind: AccessControlPolicy\n",
    };
    serve({ ...governor, "GET /policies/wide": () => ({ body: detail }), ...noUses });
    renderPage(<AccessPolicyPage />, { path: "/access-policies/:name", at: "/access-policies/wide" });
    const row = within(await screen.findByTestId("statement-one"));
    for (const text of ["redundant", "because of x/y", "denies"]) expect(row.getByText(text)).toBeVisible();
    expect(screen.queryByText(/AccessControlPolicy/)).toBeNull();
    await userEvent.click(screen.getByText("YAML"));
    expect(await screen.findByText(/kind: AccessControlPolicy/)).toBeVisible();
  });

  const statement = (sid: string, over: Partial<PolicyDetail["statements"][number]> = {}): PolicyDetail["statements"][number] => ({ sid, effect: "Allow", subjects: [app888], actions: ["redis:connect"], resources: [bobsCluster], issues: [], ...over });
  const two: PolicyDetail = {
    policy: { name: "wide", origin: { kind: "portal" }, statements: 2, issues: {}, accepted: true },
    statements: [statement("t-1-1", { ticket: "T-1", ticketVisible: true, reason: "the new checkout" }), statement("t-2-1")],
    managers: [],
    unusedKnown: true,
  };

  it("say of each statement when it was last used and why it was given", async () => {
    const uses = { items: [{ sid: "t-1-1", state: "used", lastUsed: "2026-11-20T10:00:00Z" }, { sid: "t-2-1", state: "unknown" }], since: "2025-11-20T10:00:00Z", available: true };
    serve({ ...governor, "GET /policies/wide": () => ({ body: two }), "GET /policies/wide/uses": () => ({ body: uses }) });
    renderPage(<AccessPolicyPage />, { path: "/access-policies/:name", at: "/access-policies/wide" });
    const first = within(await screen.findByTestId("statement-t-1-1"));
    expect(first.getByText("the new checkout")).toBeVisible();
    expect((await first.findByRole("time")).closest("a")).toHaveAttribute("href", "/flows?policy=wide&sid=t-1-1&window=31d");
    expect(within(screen.getByTestId("statement-t-2-1")).getByTestId("last-use")).toHaveTextContent("not known");
  });

  it("show one statement alone to those who came for it, and the others when asked", async () => {
    serve({ ...governor, "GET /policies/wide": () => ({ body: two }), ...noUses });
    renderPage(<AccessPolicyPage />, { path: "/access-policies/:name", at: "/access-policies/wide?sid=t-2-1" });
    await screen.findByTestId("statement-t-2-1");
    expect(screen.queryByTestId("statement-t-1-1")).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Show all statements" }));
    expect(await screen.findByTestId("statement-t-1-1")).toBeVisible();
  });

  it("say that the statement is not there any more, and show the others", async () => {
    serve({ ...governor, "GET /policies/wide": () => ({ body: two }), ...noUses });
    renderPage(<AccessPolicyPage />, { path: "/access-policies/:name", at: "/access-policies/wide?sid=t-9-1" });
    expect(await screen.findByTestId("chosen-statement")).toHaveTextContent("no statement t-9-1 any more");
    expect(screen.getByTestId("statement-t-1-1")).toBeVisible();
  });
});
