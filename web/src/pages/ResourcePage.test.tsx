import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Access, Me, Resource } from "../api/types";
import { app888, bobsCluster, card, carol, connection, me, nodeSummary, resource, step } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import { ResourcePage } from "./ResourcePage";

const grant: Access = { effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], policy: "p", sid: "t-42-1", ticket: "T-42", ticketVisible: true, counting: true };

function start(access: Access[]) {
  serve({
    "GET /resources/bobs-cluster": () => ({ body: resource({ mine: true }) }),
    "GET /resources/bobs-cluster/access": () => ({ body: { items: access } }),
    "GET /resources/bobs-cluster/connections": () => ({ body: { items: [connection()], available: true, since: "2026-11-19T10:00:00Z", lastFlow: "2026-11-20T10:00:00Z" } }),
    "GET /tickets": () => ({ body: { items: [] } }),
  });
  renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
}

describe("who tried", () => {
  it("says which ticket lets them in by now", async () => {
    start([grant]);
    expect(await screen.findByTestId("granted")).toHaveTextContent("Granted since by T-42");
  });

  it("says what refused them as long as nothing does", async () => {
    start([]);
    const row = within(await screen.findByTestId("connection-row"));
    expect(row.getByText("nothing allows it")).toBeVisible();
    expect(row.queryByTestId("request-access")).toBeNull();
  });
});

describe("protection", () => {
  const protection = { mode: "Audit", effectiveMode: "Audit", statements: 1, realized: true, clusters: [{ cluster: "m1", state: "Realized" }] } as const;
  const open = (over: Partial<Resource>, roles: Me["roles"] = ["requester"]) => {
    serve({
      "GET /me": () => ({ body: me({ roles }) }),
      "GET /resources/bobs-cluster": () => ({ body: resource({ ...over }) }),
      "GET /resources/bobs-cluster/access": () => ({ body: { items: [] } }),
      "GET /resources/bobs-cluster/connections": () => ({ body: { items: [], available: true, since: "2026-11-19T10:00:00Z" } }),
      "GET /tickets": () => ({ body: { items: [] } }),
    });
    renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
  };
  const asks = () => ["mode", "offboard", "onboard", "class"].filter((kind) => screen.queryByTestId(`ask-${kind}`));

  it.each([
    ["its owner may request another mode or its end", { mine: true, protection: { ...protection, clusters: [...protection.clusters] } }, ["requester"], ["mode", "offboard"]],
    ["its owner may have it onboarded", { mine: true }, ["requester"], ["onboard"]],
    ["security may, too", {}, ["requester", "security"], ["onboard", "class"]],
    ["others may not", {}, ["requester"], []],
    ["an auditor may not", { mine: true }, ["auditor"], []],
    ["a name without a class cannot be", { mine: true, class: undefined }, ["requester"], []],
  ] as [string, Partial<Resource>, Me["roles"], string[]][])("%s", async (_, over, roles, want) => {
    open(over, roles);
    await screen.findByTestId("protection");
    await waitFor(() => expect(asks()).toEqual(want));
  });
});

describe("who can reach it", () => {
  it.each([
    [["requester"], 1],
    [["auditor"], 0],
  ] as const)("says that others are hidden only to those for whom they are: %s", async (roles, hints) => {
    serve({
      "GET /me": () => ({ body: me({ roles: [...roles] }) }),
      "GET /resources/bobs-cluster": () => ({ body: resource() }),
      "GET /resources/bobs-cluster/access": () => ({ body: { items: [grant] } }),
    });
    renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
    const section = within(await screen.findByTestId("access"));
    await section.findByTestId("access-row-t-42-1");
    await waitFor(() => expect(section.queryAllByText("You see only rows of your own applications here.")).toHaveLength(hints));
  });
});

describe("the nodes of a resource", () => {
  it("stand above the members", async () => {
    serve({
      "GET /resources/bobs-cluster": () => ({ body: resource({ protection: { mode: "Enforce", effectiveMode: "Enforce", statements: 1, realized: true, clusters: [{ cluster: "m1", state: "Realized" }], nodes: nodeSummary({ realized: 2, lagging: 1 }) } }) }),
    });
    renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
    expect(await screen.findByText("Realized on 2 of 3 nodes")).toBeVisible();
    expect(screen.getByTestId("nodes")).toHaveAttribute("data-value", "busy");
  });
});

describe("the next step", () => {
  const open = (of: Partial<ReturnType<typeof card>>, over: Partial<Resource> = { mine: true }, answers: Parameters<typeof serve>[0] = {}) => {
    const calls = serve({
      ...answers,
      "GET /resources/bobs-cluster": () => ({ body: resource(over) }),
      "GET /resources/bobs-cluster/access": () => ({ body: { items: [] } }),
      "GET /resources/bobs-cluster/connections": () => ({ body: { items: [], available: true, since: "2026-11-19T10:00:00Z" } }),
      "GET /rollout/bobs-cluster": answers["GET /rollout/bobs-cluster"] ?? (() => ({ body: card(of) })),
      "GET /tickets": () => ({ body: { items: [] } }),
    });
    renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
    return calls;
  };

  it("says where the resource is, what is next, and begins it", async () => {
    open({ stage: "refine", hint: { code: "announce", next: "announced", message: verbatim("Tell them.") } });
    const block = within(await screen.findByTestId("next-step"));
    expect(await block.findByText("Refine")).toHaveAttribute("aria-current", "step");
    expect(block.getByTestId("next-hint")).toHaveTextContent("Tell them.");
    await userEvent.click(block.getByTestId("next-announce"));
    expect(await screen.findByTestId("announce-message")).toBeVisible();
  });

  it.each([
    ["is reported as an error when it could not be read", 503, "unavailable", true],
    ["is absent for people who may not read it", 403, "forbidden", false],
  ])("%s", async (_, status, code, shown) => {
    const calls = open({}, { mine: true }, { "GET /rollout/bobs-cluster": () => problem(status, code) });
    await waitFor(() => expect(calls.some(({ path }) => path === "/rollout/bobs-cluster")).toBe(true));
    if (shown) expect(await within(await screen.findByTestId("next-step")).findByTestId("error-state")).toBeVisible();
    else await waitFor(() => expect(screen.queryByTestId("next-step")).toBeNull());
  });

  it("is not requested twice", async () => {
    open({ stage: "observe", hint: { code: "propose", next: "initial", message: verbatim("Ask for Audit.") }, ticket: "T-5" });
    const waits = within(await screen.findByTestId("next-waits"));
    expect(waits.getByRole("link", { name: "T-5" })).toHaveAttribute("href", "/tickets/T-5");
    expect(screen.queryByTestId("next-advance")).toBeNull();
    expect(screen.queryByTestId("next-hint")).toBeNull();
  });

  it("names the approvers before it is requested", async () => {
    open({ stage: "observe", hint: { code: "propose", next: "initial", message: verbatim("Ask for Audit.") } }, { mine: true }, { "POST /tickets/preview": () => ({ body: { items: [{ position: 0, steps: [step("owner", "waiting", [carol])] }] } }) });
    await userEvent.click(await screen.findByTestId("next-advance"));
    expect(await screen.findByTestId("planned-deciders")).toHaveTextContent("Carol Wu");
  });

  it("leads to the clients where these are next", async () => {
    open({ hint: { code: "review", message: verbatim("Adopt them.") } });
    expect(await screen.findByTestId("next-look")).toHaveAttribute("href", "#proposal");
    expect(screen.queryByTestId("next-advance")).toBeNull();
  });

  it("is not offered to people who are not responsible for the resource", async () => {
    const calls = open({}, { mine: false });
    await screen.findByTestId("protection");
    expect(calls.some(({ path }) => path === "/rollout/bobs-cluster")).toBe(false);
  });
});

describe("the index of the page", () => {
  it.each([
    [{ mine: true }, ["Who can reach it", "Who tried", "Protection", "Evidence", "Proposal", "Unused grants", "Who could reach it in the past", "When could an application reach it", "History of modes", "Actions", "Tickets"]],
    [{ mine: false }, ["Who can reach it", "Who tried", "Protection", "Who could reach it in the past", "Actions", "Tickets"]],
  ])("links the sections that the reader has: %o", async (over, want) => {
    serve({ "GET /resources/bobs-cluster": () => ({ body: resource(over) }) });
    renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
    const index = within(await screen.findByTestId("section-index"));
    await waitFor(() => expect(index.getAllByRole("link").map((link) => link.textContent)).toEqual(want));
  });
});
