import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Impact as ImpactData, Proposal, Resource, Unused } from "../../api/types";
import { app888, bob, bobsCluster, connection, resource, ticket } from "../../testing/fixtures";
import { problem, renderPage, serve, unanswered, verbatim } from "../../testing/render";
import { ImpactSummary } from "./Impact";
import { ProposalReview } from "./ProposalReview";
import { TemporaryAudit } from "./TemporaryAudit";
import { UnusedTable } from "./UnusedTable";

const seen = { count: 10, firstSeen: "2026-11-20T09:00:00Z", lastSeen: "2026-11-20T10:00:00Z", days: 1, daysObserved: 2, clusters: ["m1"], decisions: { audited: 10 } };

describe("temporary audit", () => {
  const closed = (over: Partial<NonNullable<Resource["protection"]>> = {}) =>
    resource({ protection: { mode: "Enforce", effectiveMode: "Enforce", statements: 1, realized: true, resourceVersion: "7", canToggle: true, clusters: [{ cluster: "m1", state: "Realized", mode: "Enforce" }], ...over } });
  const show = (of: Resource, over: Parameters<typeof serve>[0] = {}) => {
    const calls = serve(over);
    return Object.assign(calls, renderPage(<TemporaryAudit resource={of} />, { path: "/", at: "/" }));
  };

  it("begins with an end and a reason, on what the person saw", async () => {
    const calls = show(closed(), { "PUT /resources/bobs-cluster/temporary-audit": () => ({ body: closed() }) });
    await userEvent.click(screen.getByTestId("audit-begin"));
    await userEvent.click(await screen.findByTestId("audit-4h"));
    await userEvent.click(screen.getByTestId("audit-confirm"));
    expect(await screen.findByText("Enter a reason.")).toBeVisible();
    await userEvent.type(screen.getByTestId("audit-reason"), "The job is cut off");
    const before = Date.now();
    await userEvent.click(screen.getByTestId("audit-confirm"));
    await waitFor(() => expect(calls).toHaveLength(1));
    const body = calls[0]?.body as { until: string; reason: string; resourceVersion: string };
    expect([body.reason, body.resourceVersion]).toEqual(["The job is cut off", "7"]);
    expect(Math.abs(Date.parse(body.until) - before - 4 * 3_600_000)).toBeLessThan(60_000);
  });

  it("keeps what was typed while the person logs in", async () => {
    const path = "PUT /resources/bobs-cluster/temporary-audit";
    const { unmount } = show(closed(), { [path]: () => problem(403, "login-too-old") });
    await userEvent.click(screen.getByTestId("audit-begin"));
    await userEvent.type(await screen.findByTestId("audit-reason"), "The job is cut off");
    await userEvent.click(screen.getByTestId("audit-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const calls = show(closed(), { [path]: () => ({ body: closed() }) });
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("audit-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "PUT")?.body).toMatchObject({ reason: "The job is cut off" }));
    await waitFor(() => expect(screen.queryByTestId("audit-dialog")).toBeNull());
    expect(sessionStorage).toHaveLength(0);
  });

  it("says who switched it on, why and until when, and can be ended", async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const calls = show(closed({ temporaryAudit: { until, reason: "The job is cut off", by: bob, active: true } }), { "DELETE /resources/bobs-cluster/temporary-audit": () => ({ body: closed() }) });
    const state = within(screen.getByTestId("temporary-audit"));
    expect(state.getByText(/The job is cut off/)).toHaveTextContent("Bob Li");
    expect(state.getByTestId("audit-left")).toHaveTextContent(/^(1:00:00|0:59:\d\d)$/);
    await userEvent.click(state.getByTestId("audit-end"));
    await userEvent.type(await screen.findByTestId("audit-end-reason"), "Fixed");
    await userEvent.click(screen.getByTestId("audit-end-confirm"));
    await waitFor(() => expect(calls[0]?.body).toEqual({ reason: "Fixed", resourceVersion: "7" }));
  });

  it.each([
    ["whoever may not", closed({ canToggle: false })],
    ["where nothing is enforced", closed({ mode: "Audit", effectiveMode: "Audit", clusters: [] })],
  ])("is not offered to %s", (_, of) => {
    show(of);
    expect(screen.queryByTestId("audit-begin")).toBeNull();
  });
});

describe("a proposal", () => {
  const proposal = (over: Partial<Proposal> = {}): Proposal => ({
    resource: bobsCluster,
    since: "2026-11-07T10:00:00Z",
    until: "2026-11-21T10:00:00Z",
    lines: [
      { subject: app888, action: "redis:connect", state: "audited", grantable: true, evidence: seen },
      { subject: { name: "n", title: "Ghost" }, action: "redis:connect", state: "new", grantable: false, evidence: seen },
      { subject: { id: "app-1", name: "a", title: "Known" }, action: "redis:connect", state: "covered", evidence: seen },
    ],
    unattributed: [],
    unknownPorts: [],
    yaml: "",
    canAdopt: true,
    ...over,
  });
  const show = (of: Proposal, over: Parameters<typeof serve>[0] = {}) => {
    const calls = serve({ "GET /resources/bobs-cluster/proposal": () => ({ body: of }), "POST /tickets/preview": () => ({ body: { items: [] } }), ...over });
    const page = renderPage(<ProposalReview resource={resource({ mine: true })} />, { path: "/", at: "/" });
    return { calls, ...page };
  };

  it("becomes one request of the lines that were chosen", async () => {
    const { calls, router } = show(proposal(), { "POST /tickets": () => ({ body: ticket({ id: "T-8" }) }) });
    await userEvent.click(await screen.findByTestId("choose-app-888"));
    await userEvent.click(screen.getByTestId("adopt"));
    await userEvent.type(await screen.findByTestId("adopt-reason"), "They are ours");
    await userEvent.click(screen.getByTestId("adopt-confirm"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-8"));
    expect(calls.find(({ method, path }) => method === "POST" && path === "/tickets")?.body).toEqual({ kind: "grant", adopt: true, items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }], reason: "They are ours" });
  });

  it("says at the field how long the approval policy allows", async () => {
    const capped = { items: [{ position: 0, steps: [], problem: { type: "about:blank", title: "no", status: 422, code: "invalid", message: verbatim("The approval policy short allows at most 180d: ask for no more.") } }], maxDurationSeconds: 180 * 86_400 };
    const { calls } = show(proposal(), { "POST /tickets/preview": () => ({ body: capped }) });
    await userEvent.click(await screen.findByTestId("choose-app-888"));
    await userEvent.click(screen.getByTestId("adopt"));
    expect(await screen.findByText("The approval policy allows at most 180 days.")).toBeVisible();
    await userEvent.type(screen.getByTestId("adopt-reason"), "They are ours");
    await userEvent.click(screen.getByTestId("adopt-confirm"));
    expect(calls.some(({ method, path }) => method === "POST" && path === "/tickets")).toBe(false);
    expect(screen.queryByTestId("duration-revoked")).toBeNull();
    await userEvent.click(screen.getByTestId("duration-90"));
    await waitFor(() => expect(screen.queryByText("The approval policy allows at most 180 days.")).toBeNull());
  });

  it("offers no line that cannot be requested", async () => {
    show(proposal());
    await screen.findByTestId("choose-app-888");
    expect(screen.getAllByRole("checkbox").map((box) => box.getAttribute("data-testid"))).toEqual(["choose-all", "choose-app-888"]);
  });

  it("says of each line that cannot be requested why", async () => {
    const lines = [
      { subject: app888, action: "redis:connect", state: "denied" as const, grantable: false, evidence: seen },
      { subject: { name: "n", title: "Ghost" }, action: "redis:connect", state: "new" as const, evidence: seen },
    ];
    show(proposal({ lines }));
    expect((await screen.findAllByTestId("not-adoptable")).map((why) => why.textContent).sort()).toEqual([
      "Clients that are refused are not proposed. The owners of the application can request access.",
      "It is not an application of a class in the catalog, so access cannot be requested for it.",
    ]);
  });

  it("of another period is not shown while the one of the chosen period is read", async () => {
    const { router } = show(proposal(), { "GET /resources/bobs-cluster/proposal": ({ search }) => (search.has("since") ? unanswered() : { body: proposal() }) });
    await screen.findByTestId("mark-reviewed");
    await router.navigate("/?seen=1");
    await waitFor(() => expect(screen.queryByTestId("mark-reviewed")).toBeNull());
    expect(screen.queryByTestId("proposal-period")).toBeNull();
  });

  it("can be read by who may not ask", async () => {
    show(proposal({ canAdopt: false }));
    expect(await screen.findAllByTestId("proposal-line")).not.toHaveLength(0);
    expect(screen.queryByRole("checkbox")).toBeNull();
  });

  it("keeps what has no name apart, with what to do about it", async () => {
    show(proposal({ unattributed: [{ source: "10.0.0.7", ports: ["6379/TCP"], evidence: seen }], unknownPorts: [{ port: 16_379, protocol: "TCP", source: "Checkout", evidence: seen }] }));
    expect(await screen.findByTestId("unattributed")).toHaveTextContent("10.0.0.7");
    expect(screen.getByTestId("unknown-ports")).toHaveTextContent("Ask the security team");
  });

  const manyLines = Array.from({ length: 53 }, (_, index) => ({ subject: { id: `app-${index}`, name: `n${index}`, title: `Client ${index}` }, action: "redis:connect", state: "audited" as const, grantable: true, evidence: seen }));

  it("becomes several requests if one cannot have all clients, and continues after a failure", async () => {
    let posts = 0;
    const { calls, router } = show(proposal({ lines: manyLines }), { "POST /tickets": () => (++posts === 2 ? problem(503, "unavailable") : { body: ticket({ id: `T-${posts}` }) }) });
    await userEvent.click(await screen.findByTestId("choose-all"));
    await userEvent.click(screen.getByTestId("adopt"));
    expect(await screen.findByTestId("adopt-parts")).toHaveTextContent("at most 50 clients, so 2 requests");
    await userEvent.type(screen.getByTestId("adopt-reason"), "They are ours");
    await userEvent.click(screen.getByTestId("adopt-confirm"));
    await waitFor(() => expect(posts).toBe(2));
    expect(await screen.findByTestId("sent-progress")).toHaveTextContent("1");
    await userEvent.click(screen.getByTestId("adopt-confirm"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/requests"));
    const sent = calls.filter(({ method, path }) => method === "POST" && path === "/tickets").map(({ body }) => (body as { items: unknown[] }).items.length);
    expect(sent).toEqual([50, 3, 3]);
  });

  const review = { at: "2026-11-20T12:00:00Z", by: bob, seenUntil: "2026-11-20T12:00:00Z", due: false };

  it("marks what is new since the last review, and shows only that on request", async () => {
    const [first, second, third] = proposal().lines;
    if (!first || !second || !third) throw new Error("no lines");
    show(proposal({ review, lines: [{ ...first, newSinceReview: true }, { ...second, newSinceReview: false }, third] }));
    expect(await screen.findByTestId("proposal-review")).toHaveTextContent("Bob Li");
    expect(screen.getAllByTestId("new-since-review")).toHaveLength(1);
    const before = screen.getAllByTestId("proposal-line").length;
    await userEvent.click(screen.getByTestId("only-new"));
    expect(screen.getAllByTestId("proposal-line")).toHaveLength(before - 1);
  });

  it("is marked as reviewed up to the flows that were shown, with a date", async () => {
    const { calls } = show(proposal({ review: { ...review, nextReview: "2026-11-20T13:00:00Z", due: true } }), { "PUT /resources/bobs-cluster/proposal/review": () => ({ body: review }) });
    expect(await screen.findByTestId("review-due")).toBeVisible();
    await userEvent.click(screen.getByTestId("mark-reviewed"));
    const field = await screen.findByTestId("next-review");
    await userEvent.type(field, "2020-01-01T10:00");
    await userEvent.click(screen.getByTestId("reviewed-confirm"));
    expect(await screen.findByText("Enter a date in the future, within a year.")).toBeVisible();
    await userEvent.clear(field);
    await userEvent.click(screen.getByTestId("reviewed-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "PUT")?.body).toEqual({ reviewed: true, until: "2026-11-21T10:00:00Z" }));
  });

  it("is marked as reviewed only up to what was shown when the dialog was opened", async () => {
    let until = "2026-11-21T10:00:00Z";
    const { calls, cache } = show(proposal(), {
      "GET /resources/bobs-cluster/proposal": () => ({ body: proposal({ until }) }),
      "PUT /resources/bobs-cluster/proposal/review": () => ({ body: review }),
    });
    await userEvent.click(await screen.findByTestId("mark-reviewed"));
    until = "2026-11-21T11:00:00Z";
    await cache.invalidateQueries();
    await waitFor(() => expect(calls.filter(({ path }) => path.endsWith("/proposal"))).toHaveLength(2));
    await waitFor(() => expect(cache.isFetching()).toBe(0));
    await userEvent.click(screen.getByTestId("reviewed-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "PUT")?.body).toEqual({ reviewed: true, until: "2026-11-21T10:00:00Z" }));
  });

  it("notifies the owners of a client with a reason, and shows who was notified", async () => {
    const [first, ...others] = proposal().lines;
    if (!first) throw new Error("no line");
    const notice = { at: "2026-11-20T12:00:00Z", by: bob, reason: "Not ours", recipients: 2, repeatableAt: "2026-11-27T12:00:00Z" };
    const { calls } = show(proposal({ lines: [{ ...first, canNotify: true }, ...others.map((each) => ({ ...each, notice }))] }), { "POST /resources/bobs-cluster/proposal/notices": () => ({ body: notice }) });
    await userEvent.click(await screen.findByTestId("notify-app-888"));
    await userEvent.click(await screen.findByTestId("client-notice-confirm"));
    expect(calls.some(({ path }) => path === "/resources/bobs-cluster/proposal/notices")).toBe(false);
    await userEvent.type(screen.getByTestId("client-notice-reason"), "Not ours");
    await userEvent.click(screen.getByTestId("client-notice-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/resources/bobs-cluster/proposal/notices")?.body).toEqual({ application: "app-888", reason: "Not ours" }));
    expect(screen.getAllByTestId("client-notice")[0]).toHaveTextContent("Bob Li");
  });

  it("keeps a notice that was refused", async () => {
    const [first] = proposal().lines;
    if (!first) throw new Error("no line");
    show(proposal({ lines: [{ ...first, canNotify: true }] }), { "POST /resources/bobs-cluster/proposal/notices": () => problem(409, "conflict") });
    await userEvent.click(await screen.findByTestId("notify-app-888"));
    await userEvent.type(await screen.findByTestId("client-notice-reason"), "Not ours");
    await userEvent.click(screen.getByTestId("client-notice-confirm"));
    expect(await screen.findByRole("alert")).toBeVisible();
    expect(screen.getByTestId("client-notice-reason")).toHaveValue("Not ours");
  });

  it("reports that Enforce would cut off no client", async () => {
    show(proposal({ lines: proposal().lines.slice(2) }));
    expect(await screen.findByTestId("proposal-empty")).toHaveTextContent("All clients that were seen are allowed already");
  });
});

describe("unused grants", () => {
  const unused = (sid: string, over: Partial<Unused> = {}): Unused => ({ policy: "p", sid, effect: "Allow", subjects: [app888], resources: [bobsCluster], actions: ["redis:connect"], daysObserved: 14, reason: verbatim("Quiet."), ticket: `T-${sid}`, ticketItem: 0, ticketVisible: true, canRevoke: true, ...over });

  it("have the reasons for which they were granted, as far as the reader may see them", async () => {
    serve({});
    renderPage(<UnusedTable rows={[unused("1", { ticketReason: "the new checkout" }), unused("2", { ticketVisible: false })]} label="Unused" />, { path: "/", at: "/" });
    expect(within(await screen.findByTestId("unused-row-1")).getByText("the new checkout")).toBeVisible();
    expect(within(screen.getByTestId("unused-row-2")).getByText("hidden")).toBeVisible();
  });

  it("can be asked to end by who may not revoke them, where the ticket is visible", async () => {
    serve({});
    renderPage(<UnusedTable rows={[unused("1", { canRevoke: false }), unused("2"), unused("3", { canRevoke: false, ticketVisible: false })]} label="Unused" />, { path: "/", at: "/" });
    expect(await screen.findByTestId("ask-revoke-1")).toHaveAttribute("href", "/requests/new?kind=revoke&target=T-1%2F0");
    expect([screen.queryByTestId("ask-revoke-2"), screen.queryByTestId("ask-revoke-3")]).toEqual([null, null]);
  });

  it("does not offer to request what a ticket requests already", async () => {
    serve({});
    const open = { canRevoke: false, revocationTicket: "T-9" };
    renderPage(<UnusedTable rows={[unused("1", { ...open, revocationVisible: true }), unused("2", { ...open, revocationVisible: false }), unused("3", { canRevoke: false })]} label="Unused" />, { path: "/", at: "/" });
    expect(await screen.findByTestId("ask-revoke-3")).toBeVisible();
    expect(within(screen.getByTestId("revocation-1")).getByRole("link", { name: "T-9" })).toHaveAttribute("href", "/tickets/T-9");
    expect(screen.getByTestId("revocation-2")).toHaveTextContent("Revocation requestedT-9");
    expect(within(screen.getByTestId("revocation-2")).queryByRole("link")).toBeNull();
    expect([screen.queryByTestId("ask-revoke-1"), screen.queryByTestId("ask-revoke-2")]).toEqual([null, null]);
  });

  it("are revoked together with one reason, and one that is refused keeps none of the others", async () => {
    const calls = serve({
      "POST /tickets/T-1/revoke": () => problem(409, "stale"),
      "POST /tickets/T-2/revoke": () => ({ body: ticket({ id: "T-2" }) }),
    });
    renderPage(<UnusedTable rows={[unused("1"), unused("2"), unused("3", { canRevoke: false })]} label="Unused" />, { path: "/", at: "/" });
    await userEvent.click(screen.getByTestId("unused-all"));
    await userEvent.click(screen.getByTestId("revoke-unused"));
    await userEvent.type(await screen.findByTestId("revoke-many-reason"), "Nobody uses them");
    await userEvent.click(screen.getByTestId("revoke-many-confirm"));
    const results = within(await screen.findByTestId("revoke-results")).getAllByRole("listitem");
    expect(results.map((each) => each.getAttribute("data-value"))).toEqual(["refused", "ok"]);
    expect(calls.filter(({ method }) => method === "POST").map(({ body }) => body)).toEqual([{ reason: "Nobody uses them", item: 0 }, { reason: "Nobody uses them", item: 0 }]);
  });
});

describe("the impact in short", () => {
  const line = { ...connection(), before: "audited", after: "default-denied" } as const;
  const impact = (over: Partial<ImpactData>): ImpactData => ({ available: true, since: seen.firstSeen, until: seen.lastSeen, newlyAllowed: [], newlyDenied: [], allowed: { connections: 0, clients: 0 }, denied: { connections: 0, clients: 0 }, unchanged: 5, uncertain: [], truncated: false, ...over });
  const named = (title: string) => ({ ...line, subject: { name: title, title } });

  it.each([
    ["says who is cut off", impact({ newlyDenied: [line], denied: { connections: 12, clients: 1 } }), "Cuts off 12 connections of the last days: Payments API."],
    ["names a few of many", impact({ newlyDenied: ["A", "B", "C", "D", "E"].map(named), denied: { connections: 1_200, clients: 9 } }), "Cuts off 1,200 connections of the last days: A, B, C, D, and 5 more."],
    ["says that nobody is", impact({}), "Cuts off no client that was seen in the last days."],
    ["says who is let in", impact({ allowed: { connections: 1, clients: 1 } }), "Lets in 1 connection that was refused."],
    ["says where it does not know", impact({ uncertain: [{ cluster: "m2", from: seen.firstSeen, to: seen.lastSeen, reason: { code: "replay.flows-lost", params: { count: 7, member: "m2" }, text: "At least 7 flows of m2 were lost." } }] }), "Flows of m2 are missing in part"],
    ["says that it cannot tell", impact({ available: false, message: verbatim("The replay took too long.") }), "The replay took too long."],
  ])("%s", (_, of, want) => {
    serve({});
    renderPage(<ImpactSummary impact={of} />, { path: "/", at: "/" });
    expect(screen.getByTestId("impact-short")).toHaveTextContent(want);
  });
});
