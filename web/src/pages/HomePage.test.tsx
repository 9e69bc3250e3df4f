import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { DeniedConnection, Home } from "../api/types";
import { app888, bob, bobsCluster, card, item, me, nothing, ticket, ticketOf } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { HomePage } from "./HomePage";

const denied: DeniedConnection = { application: app888, resource: bobsCluster, action: "redis:connect", port: 6379, protocol: "TCP", decision: "default-denied", count: 24, lastSeen: "2026-11-20T10:00:00Z" };
const nothingAtAll: Home = { waiting: [], reviews: [], underWay: [], expiring: [], denied: [], flowsAvailable: true };

function start(home: Partial<Home> = {}, over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({ "GET /home": () => ({ body: { ...nothingAtAll, ...home } }), "GET /tickets": () => ({ body: { items: [ticket()] } }), ...over });
  return { calls, ...renderPage(<HomePage />, { path: "/", at: "/" }) };
}

const ending = ticketOf("effective", { expiresAt: "2026-11-22T10:00:00Z", can: { ...nothing, extend: true } }, { id: "T-12" });

describe("home", () => {
  it("is one call, and one for the accesses to review", async () => {
    const { calls } = start({ waiting: [ticket({ id: "T-7", requester: bob })], waitingCount: 12 });
    expect(await screen.findByTestId("waits-T-7")).toHaveAttribute("href", "/approvals?ticket=T-7");
    expect(within(screen.getByTestId("waits-for-me")).getByText("12")).toBeVisible();
    expect(calls.map((call) => call.path).sort()).toEqual(["/home", "/me/review-lines"]);
  });

  it("links the access reviews that wait for the reader", async () => {
    const line = { review: "R-3", reviewName: "Caches", deadline: "2026-12-20T08:00:00Z", application: { name: "a", title: "Cart" }, resource: { name: "r", title: "Orders" } };
    start({}, { "GET /me/review-lines": () => ({ body: { items: [line, { ...line, line: 2 }], total: 31 } }) });
    expect(await screen.findByTestId("waits-R-3")).toHaveAttribute("href", "/reviews/R-3?mine=true");
    expect(within(screen.getByTestId("waiting-reviews")).getByText("31")).toBeVisible();
  });

  it("shows owners the next steps of their resources, the most advanced first", async () => {
    const items = [card({ stage: "initial", resource: { id: "a", name: "a", title: "A" } }), card({ stage: "announced", hint: { code: "enforce", message: verbatim("Ask for Enforce.") } })];
    start({}, { "GET /me": () => ({ body: me({ roles: ["resource-owner"] }) }), "GET /rollout": () => ({ body: { items, stages: { observe: 3 }, flowsAvailable: true } }) });
    const [first] = within(await screen.findByTestId("closing")).getAllByRole("listitem");
    expect(first).toHaveTextContent("Ask for Enforce.");
    expect(screen.getByTestId("closing-bobs-cluster")).toHaveAttribute("href", "/resources/bobs-cluster");
  });

  it("reads the most advanced resources from the portal, and counts the others", async () => {
    const items = ["a", "b", "c", "d"].map((id) => card({ stage: "announced", resource: { id, name: id, title: id } }));
    const { calls } = start({}, { "GET /me": () => ({ body: me({ roles: ["resource-owner"] }) }), "GET /rollout": () => ({ body: { items, nextCursor: "next", stages: { observe: 3, initial: 140, refine: 2, announced: 5 }, flowsAvailable: true } }) });
    const more = within(await screen.findByTestId("closing-more")).getByRole("link");
    expect([more.textContent, more.getAttribute("href")]).toEqual(["143 more resources", "/rollout?stage=initial&stage=refine&stage=announced"]);
    const asked = calls.find((call) => call.path === "/rollout")?.search;
    expect([asked?.get("sort"), asked?.get("limit")]).toEqual(["-stage", "4"]);
  });

  it("shows owners where to begin if no resource is in audit", async () => {
    start({}, { "GET /me": () => ({ body: me({ roles: ["resource-owner"] }) }), "GET /rollout": () => ({ body: { items: [], stages: { observe: 3 }, flowsAvailable: true } }) });
    expect(await screen.findByTestId("closing")).toHaveTextContent("3 of your resources are in Observe");
  });

  it("counts what each list leaves out, and links all of it", async () => {
    const line = { review: "R-3", reviewName: "Caches", deadline: "2026-12-20T08:00:00Z", application: { name: "a", title: "Cart" }, resource: { name: "r", title: "Orders" } };
    start(
      {
        waiting: [ticket({ id: "T-7", requester: bob })],
        waitingCount: 13,
        reviews: [ticketOf("effective", {}, { id: "T-60", breakGlass: true })],
        reviewsCount: 11,
        underWay: Array.from({ length: 9 }, (_, n) => ticket({ id: `T-${100 + n}` })),
        underWayCount: 1000,
        expiring: [ending],
        expiringCount: 2,
        denied: [denied],
        deniedCount: 41,
        deniedCountPartial: true,
        deniedApplications: [app888.name],
      },
      { "GET /me/review-lines": () => ({ body: { items: [line], total: 231 } }) },
    );
    await screen.findByTestId("waiting-reviews-more");
    const more = (list: string) => {
      const link = within(screen.getByTestId(`${list}-more`)).getByRole("link");
      return [link.textContent, link.getAttribute("href")];
    };
    expect(more("waits")).toEqual(["12 more requests", "/approvals"]);
    expect(more("reviews")).toEqual(["10 more requests", "/requests?view=review"]);
    expect(more("under-way")).toEqual(["At least 992 more requests", "/requests?state=pending&state=approved&state=applying&state=failed&state=revoking"]);
    expect(more("expiring")).toEqual(["1 more request", "/requests?view=owned&kind=grant&kind=extend&expiring=14"]);
    expect(more("refused")).toEqual(["At least 40 more connections", `/flows?${new URLSearchParams([["decision", "denied"], ["decision", "default-denied"], ["subject", app888.name]]).toString()}`]);
    expect(more("waiting-reviews")).toEqual(["230 more accesses to review", "/reviews"]);
    expect(within(screen.getByTestId("reviews")).getByText("11")).toBeVisible();
    expect(within(screen.getByTestId("under-way")).getByText("1000+")).toBeVisible();
    expect(screen.getByTestId("waits-R-3")).toHaveTextContent("Cart → Orders …");
  });

  it("marks the number of disagreements if there are more", async () => {
    start({ disagreements: 1000, disagreementsPartial: true }, { "GET /me": () => ({ body: me({ roles: ["security"] }) }), "GET /flows/coverage": () => ({ body: { available: false, items: [] } }) });
    expect(await screen.findByTestId("home-disagreements")).toHaveTextContent(/^1,000\+/);
    cleanup();
    start({ disagreements: 1000 }, { "GET /me": () => ({ body: me({ roles: ["security"] }) }), "GET /flows/coverage": () => ({ body: { available: false, items: [] } }) });
    expect(await screen.findByTestId("home-disagreements")).toHaveTextContent(/^1,000[^+]/);
  });

  it("counts the time in which members were not watched, and says that nothing was watched or that it is not known", async () => {
    const span = { since: "2026-11-20T00:00:00Z", until: "2026-11-21T00:00:00Z" };
    const coverage = (answer: Answer) => start({ disagreements: 0 }, { "GET /me": () => ({ body: me({ roles: ["security"] }) }), "GET /flows/coverage": () => answer });
    coverage({ body: { available: true, ...span, items: [{ cluster: "m1", day: "2026-11-20", watchedSeconds: 43_200, lost: 0, gapSeconds: 0 }] } });
    expect(await screen.findByTestId("home-losses")).toHaveTextContent("0flows lost in the last day, and no flows collected for 12 h");
    cleanup();
    coverage({ body: { available: true, ...span, items: [] } });
    expect(await screen.findByTestId("nothing-watched")).toBeVisible();
    expect(screen.queryByTestId("home-losses")).toBeNull();
    cleanup();
    coverage(problem(503, "unavailable"));
    expect(await screen.findByTestId("watch-unknown")).toBeVisible();
  });

  it("says that a number of the section Watch is not known", async () => {
    const security = { "GET /me": () => ({ body: me({ roles: ["security"] }) }), "GET /flows/coverage": () => ({ body: { available: true, items: [] } }) };
    start({}, security);
    expect(await screen.findByTestId("watch-unknown")).toBeVisible();
    expect(screen.queryByTestId("home-disagreements")).toBeNull();
    cleanup();
    start({ disagreements: 0 }, security);
    expect(await screen.findByTestId("home-disagreements")).toHaveTextContent(/^0/);
    expect(screen.queryByTestId("watch-unknown")).toBeNull();
  });

  it("lists every access that ends in the period, and none that ends later", async () => {
    const ends = (position: number, expiresAt: string, state: "effective" | "failed" | "revoked" = "effective") => item({ position, state, expiresAt });
    const tickets = [ticket({ id: "T-12", items: [ends(0, "2026-12-04T10:00:00Z"), ends(1, "2027-06-01T10:00:00Z"), ends(2, "2026-11-24T10:00:00Z", "revoked")] }), ticket({ id: "T-13", items: [ends(0, "2026-11-25T10:00:00Z", "failed")] })];
    start({ expiring: tickets, expiringCount: 2, expiringUntil: "2026-12-04T11:00:00+00:00" });
    const section = within(await screen.findByTestId("expiring"));
    expect(section.getAllByTestId(/^expiring-T-/).map((row) => row.dataset.testid)).toEqual(["expiring-T-13", "expiring-T-12"]);
    expect(section.getByText("2")).toBeVisible();
  });

  it("says of each access that ends when it was last used and why it was given", async () => {
    const ends = (position: number) => item({ position, state: "effective", expiresAt: "2026-12-04T10:00:00Z" });
    const uses = [{ ticket: "T-12", item: 0, state: "used" as const, lastUsed: "2026-11-20T10:00:00Z" }, { ticket: "T-12", item: 1, state: "unused" as const }];
    start({ expiring: [ticket({ id: "T-12", reason: "the new checkout", items: [ends(0), ends(1), ends(2)] })], expiringCount: 1, expiringUses: uses });
    const section = within(await screen.findByTestId("expiring"));
    expect(section.getAllByTestId("last-use").map((each) => each.dataset.value)).toEqual(["used", "unused", "unavailable"]);
    expect(section.getAllByText("the new checkout")).toHaveLength(3);
    expect(section.getAllByTestId("last-use")[0]?.querySelector("a")).toHaveAttribute("href", "/flows?subject=app-888&resource=bobs-cluster&action=redis%3Aconnect&window=31d");
  });

  it("says how many stopped rollouts it does not name", async () => {
    const stopped = ["a", "b", "c", "d", "e"].map((id) => ({ id, name: id, title: id.toUpperCase() }));
    start({ stopped });
    expect(await screen.findByTestId("home-stopped")).toHaveTextContent("5rollouts stopped by their guards: A, B, C, and 2 more");
  });

  it("counts nothing beyond lists that are complete", async () => {
    start({ waiting: [ticket({ id: "T-7", requester: bob })], waitingCount: 1, underWay: [ticket()], underWayCount: 1, expiring: [ending], expiringCount: 1, denied: [denied], deniedCount: 1 });
    expect(await screen.findByTestId("waits-T-7")).toBeVisible();
    expect(screen.queryAllByTestId(/-more$/)).toEqual([]);
    expect(within(screen.getByTestId("expiring")).getByText("1")).toBeVisible();
  });

  it("shows that sections are empty, and leaves out exceptional ones", async () => {
    start();
    expect(await within(await screen.findByTestId("waits-for-me")).findByText("No request is waiting for your decision.")).toBeVisible();
    expect(screen.queryByTestId("reviews")).toBeNull();
    expect(screen.queryByTestId("expiring")).toBeNull();
  });

  it("offers each refused access, and explains why the rest cannot be requested", async () => {
    start({ denied: [denied, { ...denied, action: undefined, port: 9121 }] });
    const rows = (await screen.findAllByTestId("connection-row")).map((row) => within(row));
    expect(rows.map((row) => row.queryAllByTestId("request-access").map((link) => link.getAttribute("href")))).toEqual([["/requests/new?application=app-888&resource=bobs-cluster&action=redis%3Aconnect"], []]);
    expect(rows.map((row) => row.queryAllByTestId("cannot-ask").length)).toEqual([0, 1]);
  });

  it("links to the open request for the same access", async () => {
    start({ denied: [{ ...denied, ticket: "T-9" }] });
    expect(await screen.findByTestId("asked")).toHaveTextContent("Requested in T-9");
    expect(screen.queryByTestId("request-access")).toBeNull();
  });

  it("does not call it nothing when the flows cannot be read", async () => {
    start({ flowsAvailable: false });
    expect(await screen.findByTestId("flows-unavailable")).toBeVisible();
    expect(screen.queryByText("None of your applications had refused connections.")).toBeNull();
  });

  it("extends what ends soon with one click and a length", async () => {
    const { calls } = start({ expiring: [ending] }, { "POST /tickets": () => ({ status: 201, body: ticket({ id: "T-50", kind: "extend" }) }) });
    await userEvent.click(await screen.findByTestId("extend-T-12"));
    await userEvent.click(await screen.findByTestId("extend-T-12-30"));
    expect(await screen.findByTestId("extension-of-T-12")).toHaveTextContent("Requested in T-50");
    const sent = calls.find((call) => call.method === "POST");
    expect(sent?.body).toEqual({ kind: "extend", items: [{ target: { ticket: "T-12", item: 0 } }], durationSeconds: 2_592_000, reason: "Still needed. Checkout needs it." });
    expect(sent?.headers.get("Idempotency-Key")).toMatch(/^[0-9a-f]{32}$/);
  });

  it("does not ask twice for the same extension", async () => {
    start({ expiring: [ending], expiringRequested: [{ ticket: "T-12", item: 0, requestedIn: "T-51" }] });
    expect(await screen.findByTestId("extension-of-T-12")).toHaveTextContent("T-51");
    expect(screen.queryByTestId("extend-T-12")).toBeNull();
  });

  it("says why an extension was refused, and keeps the rest of the page", async () => {
    start({ expiring: [ending] }, { "POST /tickets": () => problem(422, "invalid", { detail: "At most 90 days." }) });
    await userEvent.click(await screen.findByTestId("extend-T-12"));
    await userEvent.click(await screen.findByTestId("extend-T-12-90"));
    expect(await screen.findByText("At most 90 days.")).toBeVisible();
  });

  it("shows who reviews what went through broken glass", async () => {
    start({ reviews: [ticketOf("effective", {}, { id: "T-60", breakGlass: true })] });
    expect(await within(await screen.findByTestId("reviews")).findByTestId("break-glass-badge")).toBeVisible();
  });

  it("shows an auditor all requests, and offers none", async () => {
    const { calls } = start({}, { "GET /me": () => ({ body: me({ roles: ["auditor"] }) }) });
    expect(await within(await screen.findByTestId("latest")).findByTestId("ticket-row-T-42")).toBeVisible();
    expect(screen.queryByTestId("new-request")).toBeNull();
    expect(screen.queryByTestId("waits-for-me")).toBeNull();
    await waitFor(() => expect(calls.some((call) => call.path === "/tickets" && call.search.get("view") === "all")).toBe(true));
    expect(calls.some((call) => call.path === "/home")).toBe(false);
    expect(screen.queryByTestId("latest-more")).toBeNull();
  });

  it("says that an auditor sees only the newest requests", async () => {
    start({}, { "GET /me": () => ({ body: me({ roles: ["auditor"] }) }), "GET /tickets": () => ({ body: { items: [ticket()], nextCursor: "next" } }) });
    expect(within(await screen.findByTestId("latest-more")).getByRole("link")).toHaveAttribute("href", "/requests?view=all");
  });
});
