import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { ItemFacts, TicketFacts } from "../api/types";
import { chooseLanguage } from "../i18n";
import { bobsCluster, item } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { DecisionFacts } from "./DecisionFacts";

const watched = { enough: false, percent: 41.5, lostPercent: 0, member: "m2" };
const ref = (id: string, title: string) => ({ id, name: `trnv1:rsc:x:${id}`, title });
const facts = (over: Partial<ItemFacts> = {}): ItemFacts => ({
  position: 0,
  resource: bobsCluster,
  application: ref("app-888", "Payments API"),
  sensitivity: "high",
  mode: "Enforce",
  owners: [{ kind: "person", id: "bob", displayName: "Bob" }],
  clients: { total: 12, items: [ref("app-1", "One"), ref("app-2", "Two")] },
  observed: { total: 1, unnamed: 3, items: [{ subject: ref("app-1", "One"), count: 40, refused: 2, lastSeen: "2026-11-20T10:00:00Z" }], watched },
  reached: { total: 1, items: [{ resource: ref("orders", "Orders"), sensitivity: "high", anyone: false }] },
  earlier: { total: 2, more: false, items: [
    { ticket: "T-7", kind: "grant", state: "expired", createdAt: "2026-10-01T10:00:00Z", decidedAt: "2026-10-02T10:00:00Z", deciders: [{ id: "bob", displayName: "Bob" }] },
    { kind: "grant", state: "rejected", createdAt: "2026-09-01T10:00:00Z" },
  ] },
  ...over,
});
const page = (items: ItemFacts[], over: Partial<TicketFacts> = {}): TicketFacts => ({ items, since: "2026-11-06T10:00:00Z", until: "2026-11-20T10:00:00Z", flowsAvailable: true, ...over });

function show(answer: (call: Call) => Answer, items = [item()]) {
  serve({ "GET /tickets/T-42/facts": answer });
  return renderPage(<DecisionFacts id="T-42" items={items} />, { path: "/tickets/:id", at: "/tickets/T-42" });
}

afterEach(() => chooseLanguage("en"));

describe("the facts of a ticket", () => {
  it("shows what a decision needs to know, with what is left out of each list", async () => {
    show(() => ({ body: page([facts()]) }));
    expect(await screen.findByTestId("facts-resource")).toHaveTextContent("High sensitivity");
    expect(screen.getByTestId("facts-resource")).toHaveTextContent("Owned by Bob");
    expect(screen.getByTestId("facts-clients")).toHaveTextContent("12 clientsOneTwo10 more");
    expect(screen.getByTestId("facts-observed")).toHaveTextContent("Seen in 14 days1 clientOne (40, refused: 2)3 connections from sources without a namem2 was watched 41.5% of the time");
    expect(screen.getByTestId("facts-reached")).toHaveTextContent("Payments API reaches already1 resourceOrders");
    const earlier = within(screen.getByTestId("facts-earlier"));
    expect(earlier.getAllByRole("link").map((link) => link.textContent)).toEqual(["T-7"]);
    expect(earlier.getByText("decided by Bob")).toBeVisible();
    expect(screen.queryByTestId("facts-use")).toBeNull();
    expect(screen.queryByTestId("facts-hidden")).toBeNull();
  });

  it.each([
    ["used", { count: 7, lastUsed: "2026-11-20T09:00:00Z", from: [{ from: "m1", to: "m2", count: 7, lastUsed: "2026-11-20T09:00:00Z" }], total: 1 }, "7 connections, last used"],
    ["unused", {}, "Not used since the grant."],
    ["unknown", {}, "Not known: no connection was seen"],
  ] as const)("never calls access unused that was not watched: %s", async (state, over, text) => {
    const use = { since: "2026-11-01T10:00:00Z", state, count: 0, refused: 0, from: [], total: 0, watched: { ...watched, enough: state !== "unknown" }, ...over };
    show(() => ({ body: page([facts({ use: { ...use, from: [...use.from] } })]) }));
    expect(await screen.findByTestId("facts-use")).toHaveTextContent(text);
    if (state === "used") expect(screen.getByTestId("facts-use")).toHaveTextContent("m1 to m2: 7");
    if (state === "unknown") expect(screen.getByTestId("facts-use")).not.toHaveTextContent("Not used");
  });

  it("shows what a change of a class concerns", async () => {
    await chooseLanguage("zh");
    const affected = { resources: 300, examined: 200, clients: 9, firstResources: [ref("orders", "Orders")] };
    show(() => ({ body: page([{ position: 0, affected }]) }));
    expect(await screen.findByTestId("facts-affected")).toHaveTextContent("300 个资源Orders另外 299 个14 天内在其中观测到 9 个客户端。只统计了其中前 200 个。");
  });

  const nobody = { connections: 0, clients: 0, items: [] };
  const statement = (over: Partial<NonNullable<ItemFacts["statement"]>> = {}): ItemFacts => ({
    position: 0,
    statement: {
      resources: {
        total: 12, later: true, notOnboarded: 3, sensitivities: { high: 1, medium: 0, low: 10, unknown: 1 },
        items: [{ resource: bobsCluster, sensitivity: "high", mode: "Enforce", owners: [{ kind: "person", id: "bob", displayName: "Bob" }] }, { resource: ref("x", "X"), owners: [] }],
      },
      subjects: { anyone: false, later: false, applications: { total: 0, items: [] }, addresses: ["203.0.113.0/24"], registered: { total: 1, items: [ref("app-1", "One")] } },
      observed: { resources: 12, examined: 12, total: 1, more: false, unnamed: 4, uncertain: 2, items: [{ subject: ref("app-1", "One"), count: 40, refused: 2, lastSeen: "2026-11-20T10:00:00Z" }], watched },
      effect: {
        letsIn: { connections: 9, clients: 12, items: [{ subject: ref("app-1", "One"), count: 7, resources: 2, lastSeen: "2026-11-20T10:00:00Z", before: "default-denied" }] },
        cutsOff: nobody, otherwise: nobody, unknown: 2, truncated: true,
      },
      ...over,
    },
  });

  it("shows what a statement covers, whom it lets in, and what is not known", async () => {
    show(() => ({ body: page([statement()]) }), [item({ state: "pending" })]);
    const covered = await screen.findByTestId("facts-covered");
    expect(covered).toHaveTextContent("12 resources: 1 of high sensitivity, 10 of low sensitivity, and 1 whose sensitivity is not known");
    expect(covered).toHaveTextContent("Owned by Bob");
    expect(covered).toHaveTextContent("10 more");
    expect(covered).toHaveTextContent("3 of them are not onboarded");
    expect(covered).toHaveTextContent("added later");
    expect(screen.getByTestId("facts-subjects")).toHaveTextContent("Addresses outside the fleet: 203.0.113.0/241 application is registered with such an address:One");
    expect(screen.getByTestId("facts-lets-in")).toHaveTextContent("Lets in 12 clients that are refused now (9 connections):One (7), last seen");
    expect(screen.getByTestId("facts-lets-in")).toHaveTextContent("11 more");
    expect(screen.queryByTestId("facts-cuts-off")).toBeNull();
    expect(screen.getByTestId("facts-effect")).toHaveTextContent("Nothing can be said about 2 times or sources;");
    expect(screen.getByTestId("facts-effect")).toHaveTextContent("Only a part");
    expect(screen.getByTestId("facts-observed")).toHaveTextContent("One (40, refused: 2), last seen");
    expect(screen.getByTestId("facts-observed")).toHaveTextContent("4 connections from sources without a name");
    expect(screen.getByTestId("facts-observed")).toHaveTextContent("2 connections from sources of which it is not known");
    expect(screen.queryByText("There is nothing to know about this kind of change.")).toBeNull();
  });

  it.each([
    ["watched", { letsIn: nobody, cutsOff: nobody, otherwise: nobody, unknown: 0, truncated: false }, "Nobody who was seen would be let in or cut off."],
    ["not watched well enough", { letsIn: nobody, cutsOff: nobody, otherwise: nobody, unknown: 1, truncated: false }, "but not everything was watched"],
    ["not known", undefined, "is not known now"],
  ] as const)("never says that nobody is concerned where it is not known: %s", async (_, effect, text) => {
    const facts = statement();
    delete facts.statement?.effect;
    if (effect && facts.statement) facts.statement.effect = { letsIn: { ...nobody, items: [] }, cutsOff: { ...nobody, items: [] }, otherwise: { ...nobody, items: [] }, unknown: effect.unknown, truncated: effect.truncated };
    show(() => ({ body: page([facts]) }), [item({ state: "pending" })]);
    expect(await screen.findByTestId("facts-effect")).toHaveTextContent(text);
    if (effect?.unknown !== 0) expect(screen.getByTestId("facts-effect")).not.toHaveTextContent("cut off.");
  });

  it("shows anyone, whom a deny cuts off, and no effect of what is decided", async () => {
    const cutsOff = { connections: 5, clients: 1, items: [{ subject: { name: "", title: "203.0.113.0/24" }, count: 5, resources: 1, lastSeen: "2026-11-20T10:00:00Z", before: "allowed" as const }] };
    const subjects = { anyone: true, later: false, applications: { total: 0, items: [] }, addresses: [], registered: { total: 0, items: [] } };
    const deny = statement({ subjects, effect: { letsIn: nobody, cutsOff, otherwise: nobody, unknown: 0, truncated: false } });
    show(() => ({ body: page([deny, { ...deny, position: 1 }]) }), [item({ state: "pending" }), item({ position: 1, state: "effective" })]);
    const first = within(await screen.findByTestId("facts-0"));
    expect(first.getByTestId("facts-subjects")).toHaveTextContent("Anyone");
    expect(first.getByTestId("facts-cuts-off")).toHaveTextContent("Cuts off 1 client (5 connections):203.0.113.0/24 (5)");
    expect(within(screen.getByTestId("facts-1")).queryByTestId("facts-effect")).toBeNull();
  });

  it("shows the resources of a package and what changes for its holders", async () => {
    const none = { total: 0, items: [] };
    show(() => ({ body: page([{
      position: 0,
      package: {
        toHolders: true,
        resources: { total: 1, sensitivities: { high: 1, medium: 0, low: 0, unknown: 0 }, items: [
          { resource: ref("orders", "Orders"), sensitivity: "high", change: "changed", actions: ["redis:connect"], before: ["redis:admin"] },
          { resource: ref("old", "Old"), change: "removed", actions: ["redis:connect"] },
        ] },
        holders: { total: 3, items: [ref("app-1", "One")] },
        changes: [{ application: ref("app-1", "One"), gets: { total: 1, items: [ref("orders", "Orders")] }, loses: { total: 2, items: [ref("old", "Old")] }, renews: none }],
      },
    }]) }));
    expect(await screen.findByTestId("facts-packaged")).toHaveTextContent("1 resource: 1 of high sensitivityOrdersHigh sensitivityredis:connectchanged; before: redis:adminOldredis:connectremoved");
    expect(screen.getByTestId("facts-holders")).toHaveTextContent("3 applicationsThe version is given to them:Onegets Ordersloses Old 1 more2 more");
  });

  it("shows what added addresses reach already, and what is not known of them", async () => {
    show(() => ({ body: page([{
      position: 0,
      workload: {
        added: ["192.0.2.7"], removed: [],
        byAddress: { total: 1, items: [{ resource: ref("orders", "Orders"), anyone: true }] },
        observed: { examined: 3, count: 0, refused: 0, uncertain: 9, watched },
      },
    }]) }));
    expect(await screen.findByTestId("facts-addresses")).toHaveTextContent("Added: 192.0.2.7");
    expect(screen.getByTestId("facts-by-address")).toHaveTextContent("Orders (like anyone)");
    expect(screen.getByTestId("facts-address-use")).toHaveTextContent("9 connections from sources of which it is not known");
    expect(screen.getByTestId("facts-address-use")).not.toHaveTextContent("No connection");
  });

  it("opens only the first of several items, and reads more on demand", async () => {
    const items = Array.from({ length: 3 }, (_, position) => item({ position }));
    show(({ search }) => ({ body: search.get("cursor") ? page([facts({ position: 2 })]) : page([facts(), facts({ position: 1 })], { nextCursor: "next" }) }), items);
    expect(await screen.findByTestId("facts-0")).toHaveAttribute("open");
    expect(screen.getByTestId("facts-1")).not.toHaveAttribute("open");
    await userEvent.click(screen.getByTestId("facts-more"));
    expect(await screen.findByTestId("facts-2")).toBeInTheDocument();
    expect(screen.queryByTestId("facts-more")).toBeNull();
  });

  it("says when flows are missing, and keeps the other facts", async () => {
    const rest = facts();
    delete rest.observed;
    show(() => ({ body: page([rest], { flowsAvailable: false, message: { code: "verbatim", params: { text: "No flows." }, text: "No flows." } }) }));
    expect(await screen.findByTestId("facts-unavailable")).toHaveTextContent("No flows.");
    expect(screen.getByTestId("facts-clients")).toBeVisible();
  });

  it("says that others see more", async () => {
    const rest = facts({ hidden: ["clients"] });
    delete rest.clients;
    show(() => ({ body: page([rest]) }));
    expect(await screen.findByTestId("facts-hidden")).toBeVisible();
  });

  it("shows nothing to people who may not see them, and an error with a retry otherwise", async () => {
    show(() => problem(403, "forbidden"));
    expect(await screen.findByTestId("skeleton")).toBeVisible();
    await expect.poll(() => screen.queryByTestId("ticket-facts")).toBeNull();
  });

  it("offers a retry", async () => {
    let calls = 0;
    show(() => (calls++ === 0 ? problem(500, "internal") : { body: page([facts()]) }));
    await userEvent.click(within(await screen.findByTestId("error-state")).getByRole("button"));
    expect(await screen.findByTestId("facts-resource")).toBeVisible();
  });
});
