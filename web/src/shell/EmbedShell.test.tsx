import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { client, settled } from "../api/client";
import type { Access, Proposal, RolloutCard, Unused } from "../api/types";
import { ApplicationPage } from "../pages/ApplicationPage";
import { ResourcePage } from "../pages/ResourcePage";
import { app888, application, bobsCluster, card, connection, me, resource } from "../testing/fixtures";
import { problem, renderRoutes, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { EmbedShell, OutsideEmbed } from "./EmbedShell";

class SilentStream {
  readyState = 1;
  addEventListener() {}
  close() {}
}

const grant: Access = { effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], policy: "p", sid: "t-42-1", ticket: "T-42", ticketVisible: true, canRevoke: true, counting: true };
const unused: Unused = { policy: "p", sid: "t-42-1", effect: "Allow", subjects: [app888], resources: [bobsCluster], actions: ["redis:connect"], ticket: "T-42", canRevoke: true, daysObserved: 14, reason: verbatim("not used") };
const waves: RolloutCard["waves"] = { wave: 1, waves: 2, waiting: 1, everywhere: false, startedAt: "2026-11-20T10:00:00Z", actions: ["pause"] };
const protection = { mode: "Enforce", effectiveMode: "Enforce", statements: 1, realized: true, canToggle: true, clusters: [{ cluster: "m1", state: "Realized", mode: "Enforce" }] } as const;
const seen = { count: 12, firstSeen: "2026-11-19T10:00:00Z", lastSeen: "2026-11-20T10:00:00Z", days: 2, daysObserved: 2, clusters: ["m1"], decisions: { audited: 12 } };
const proposal: Proposal = {
  resource: bobsCluster, since: "2026-11-19T10:00:00Z", until: "2026-11-20T10:00:00Z", canAdopt: true, yaml: "", unattributed: [], unknownPorts: [],
  lines: [{ subject: app888, action: "redis:connect", state: "audited", grantable: true, evidence: seen }],
};
const connections: Answer = { body: { items: [connection()], available: true, since: "2026-11-19T10:00:00Z", lastFlow: "2026-11-20T10:00:00Z" } };

/** start opens a page as a person who may do everything; with `embedded`, as the server marks it for a frame. */
function start(at: string, { embedded = true, answers = {} }: { embedded?: boolean; answers?: Record<string, (call: Call) => Answer> } = {}) {
  vi.stubGlobal("EventSource", SilentStream);
  if (embedded) document.head.insertAdjacentHTML("beforeend", '<meta name="acp-embedded" content="true">');
  const calls = serve({
    "GET /me": () => ({ body: me({ roles: ["requester", "application-owner", "resource-owner", "security"] }) }),
    "GET /resources/bobs-cluster": () => ({ body: resource({ mine: true, protection: { ...protection, clusters: [...protection.clusters] } }) }),
    "GET /resources/bobs-cluster/access": () => ({ body: { items: [grant] } }),
    "GET /resources/bobs-cluster/connections": () => connections,
    "GET /resources/bobs-cluster/proposal": () => ({ body: proposal }),
    "GET /resources/bobs-cluster/unused": () => ({ body: { items: [unused], quietDays: 14 } }),
    "GET /rollout/bobs-cluster": () => ({ body: card({ stage: "refine", hint: { code: "announce", next: "announced", message: verbatim("Tell them.") }, waves }) }),
    "GET /applications/app-888": () => ({ body: application() }),
    "GET /applications/app-888/access": () => ({ body: { items: [grant] } }),
    "GET /applications/app-888/connections": () => connections,
    "GET /applications/app-888/unused": () => ({ body: { items: [unused], quietDays: 14 } }),
    "GET /tickets": () => ({ body: { items: [] } }),
    ...answers,
  });
  const pages = [
    { path: "applications/:id", element: <ApplicationPage /> },
    { path: "resources/:id", element: <ResourcePage /> },
  ];
  const routes = embedded ? [{ path: "/", element: <EmbedShell />, children: [...pages, { path: "*", element: <OutsideEmbed /> }] }] : [{ path: "/", children: pages }];
  return { calls, ...renderRoutes(routes, at) };
}

afterEach(() => document.head.querySelector('meta[name="acp-embedded"]')?.remove());

const changes = ["revoke-T-42", "audit-begin", "next-announce", "waves-pause", "choose-all", "unused-t-42-1"];
const shown = () => changes.filter((id) => screen.queryAllByTestId(id).length > 0);

describe("a page in a frame of another site", () => {
  it.each([
    ["resource", "/resources/bobs-cluster", changes],
    ["application", "/applications/app-888", ["revoke-T-42", "unused-t-42-1"]],
  ])("shows the %s without anything that changes it", async (_, path, want) => {
    start(path, { embedded: false });
    await waitFor(() => expect(shown()).toEqual(want));
    cleanup();
    const { calls } = start(`${path}?embed=1`);
    expect(await screen.findByTestId("access-row-t-42-1")).toBeVisible();
    await waitFor(() => expect(calls.some((call) => call.path === `${path}/unused`)).toBe(true));
    expect(await screen.findByTestId("unused")).toHaveTextContent("t-42-1");
    expect(shown()).toEqual([]);
    expect(screen.queryByRole("navigation")).toBeNull();
    expect(screen.queryByTestId("nav-open")).toBeNull();
    expect(calls.filter(({ method }) => method !== "GET")).toEqual([]);
  });

  it("opens links in new tabs, not in the frame", async () => {
    const { router } = start("/resources/bobs-cluster?embed=1");
    const row = within(await screen.findByTestId("access-row-t-42-1"));
    const ticket = row.getByRole("link", { name: "T-42" });
    await waitFor(() => expect(ticket).toHaveAttribute("target", "_blank"));
    await userEvent.click(ticket);
    expect(router.state.location.pathname).toBe("/resources/bobs-cluster");
    for (const link of screen.getAllByRole("link").filter((each) => !each.hasAttribute("download"))) {
      expect([link.getAttribute("target"), link.getAttribute("rel")]).toEqual(["_blank", "noopener"]);
    }
    expect(screen.getByTestId("embed-open")).toHaveAttribute("href", "/resources/bobs-cluster");
  });

  it("is no way to other pages", async () => {
    start("/approvals?embed=1");
    expect(await screen.findByTestId("embed-outside")).toBeVisible();
    expect(screen.getAllByTestId("embed-open")[0]).toHaveAttribute("href", "/approvals");
  });

  it("shows no login without a session, but a link, and the page afterwards", async () => {
    let signedIn = false;
    const { calls, cache, router } = start("/resources/bobs-cluster?embed=1", {
      answers: { "GET /me": () => (signedIn ? { body: me() } : problem(401, "unauthenticated")) },
    });
    const text = await screen.findByTestId("embed-signed-out");
    expect(within(text).getByTestId("embed-open")).toHaveAttribute("href", "/resources/bobs-cluster");
    expect(screen.queryByTestId("access")).toBeNull();
    expect(router.state.location.pathname).toBe("/resources/bobs-cluster");
    signedIn = true;
    await cache.invalidateQueries();
    expect(await screen.findByTestId("access-row-t-42-1")).toBeVisible();
    expect(calls.length).toBeGreaterThan(0);
  });

  it("sends no call that writes, whatever asks for it", async () => {
    const { calls } = start("/resources/bobs-cluster?embed=1");
    await expect(settled(client.POST("/tickets/{id}/withdraw", { params: { path: { id: "T-42" } }, body: { reason: "x" } } as never))).rejects.toMatchObject({ code: "network" });
    expect(calls.some(({ method }) => method === "POST")).toBe(false);
  });
});
