import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { AccessReview, ReviewLine, Role } from "../api/types";
import { keys } from "../api/keys";
import { me } from "../testing/fixtures";
import { problem, renderPage, serve, unanswered, verbatim } from "../testing/render";
import { ReviewPage } from "./ReviewPage";
import { ReviewReportPage } from "./ReviewReportPage";
import { ReviewsPage } from "./ReviewsPage";

const bob = { id: "bob", displayName: "Bob Tanaka" };

const review = (over: Partial<AccessReview> = {}): AccessReview => ({
  id: "R-3", name: "Caches", state: "open", createdBy: { id: "sam", displayName: "Sam" }, createdAt: "2026-11-20T08:00:00Z", scope: {}, reviewers: ["resource-owner"],
  silence: "shorten", graceDays: 14, deadline: "2026-12-20T08:00:00Z", windowDays: 90, deciding: true, canEnd: false, canExport: false,
  counts: { total: 3, open: 2, applying: 0, kept: 1, shortened: 0, revoked: 0, ended: 0, skipped: 0, silent: 0, recommended: { keep: 1, revoke: 1 } },
  ...over,
});

const line = (number: number, over: Partial<ReviewLine> = {}): ReviewLine => ({
  review: "R-3", reviewName: "Caches", deadline: "2026-12-20T08:00:00Z", line: number, version: 4, state: "open",
  application: { id: `app-${number}`, name: `app/${number}`, title: `App ${number}` }, resource: { id: "bobs-cluster", name: "redis", title: "Bob’s cluster" },
  actions: ["redis:connect"], since: "2026-01-20T08:00:00Z", ticket: "T-7", reviewers: [bob], rule: "resource-owner",
  evidence: { at: "2026-11-20T08:00:00Z", days: 90, count: 0, watched: true }, recommendation: "revoke", canDecide: true, ...over,
});

/** statementLine is a line about a statement, which has no application and no resource. */
function statementLine(subjects: string[], resources: string[]): ReviewLine {
  const made = line(1, { ticket: "T-9", scope: { effect: "Allow", subjects, resources } });
  delete made.application;
  delete made.resource;
  return made;
}

interface Start {
  lines?: ReviewLine[];
  over?: Partial<AccessReview>;
  roles?: Role[];
  refuse?: boolean;
}

function start({ lines = [line(1), line(2, { recommendation: "keep", evidence: { at: "2026-11-20T08:00:00Z", days: 90, count: 12, lastUsed: "2026-11-19T08:00:00Z", watched: true } })], over = {}, roles = ["requester", "resource-owner"], refuse = false }: Start = {}) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /reviews/R-3": () => ({ body: review(over) }),
    "GET /reviews": () => ({ body: { items: [review(over)] } }),
    "GET /reviews/R-3/lines": () => ({ body: { items: lines } }),
    "GET /me/review-lines": () => ({ body: { items: lines, total: lines.length } }),
    "POST /reviews/R-3/decisions": ({ body }) => ({
      body: {
        items: (body as { decisions: { line: number }[] }).decisions.map(({ line: number }) =>
          refuse ? { line: number, ok: false, problem: { type: "about:blank", title: "", status: 409, code: "stale", message: verbatim("The access was extended.") } } : { line: number, ok: true },
        ),
      },
    }),
    "POST /reviews/R-3/end": () => ({ body: review({ endedAt: "2026-11-20T09:00:00Z", deciding: false }) }),
  });
  return calls;
}

const show = () => renderPage(<ReviewPage />, { path: "/reviews/:id", at: "/reviews/R-3" });

describe("an access review", () => {
  it("shows the observed use and a recommendation beside each access", async () => {
    start();
    show();
    const first = within(await screen.findByTestId("line-1"));
    expect(first.getByText("Never used in 90 days")).toBeVisible();
    expect(first.getByTestId("recommendation")).toHaveAttribute("data-value", "revoke");
    expect(within(screen.getByTestId("line-2")).getByText(/12 connections/)).toBeVisible();
  });

  it.each([
    ["an access of today", 1, "it began within the last day, which is too short to judge its use"],
    ["a resource that is placed nowhere", 90, "where it is placed is not known"],
  ])("says why nothing can be said about %s", async (_, days, want) => {
    start({ lines: [line(1, { recommendation: "none", evidence: { at: "2026-11-20T08:00:00Z", days, count: 0, watched: false } })] });
    show();
    expect(await screen.findByTestId("use-not-watched")).toHaveTextContent(want);
  });

  it("says how far an absence of use can be relied on", async () => {
    start({ lines: [line(1, { recommendation: "none", evidence: { at: "2026-11-20T08:00:00Z", days: 90, count: 0, watched: false, watchedPercent: 61.2, lostPercent: 0.4, member: "m2" } })] });
    show();
    const row = within(await screen.findByTestId("line-1"));
    expect(row.getByText("No use seen in 90 days")).toBeVisible();
    expect(row.getByText("in every cluster observed at least 61.2% of the time, at most 0.4% of flows lost; the worst is m2")).toBeVisible();
  });

  it("says in words what a statement lets through, and names it where it is decided", async () => {
    const subjects = ["*", ...Array.from({ length: 6 }, (_each, at) => `trnv1:rsc:o:iam:sa:app/${at}`)];
    start({ lines: [statementLine(subjects, ["trnv1:rsc:o:redis:clusters:*"])] });
    show();
    const row = within(await screen.findByTestId("line-1"));
    expect(row.getByTestId("statement")).toHaveTextContent("Lets anyone, app / 0, app / 1, app / 2, app / 3, and 2 more reach redis / *.");
    expect(row.getByText(/T-9/)).toBeVisible();
    expect(row.getByRole("checkbox", { name: "*, app / 0, app / 1 +4 → redis / *" })).toBeVisible();
    await userEvent.click(row.getByTestId("revoke-1"));
    expect(within(await screen.findByTestId("decide-dialog")).getByText("*, app / 0, app / 1 +4 → redis / *")).toBeVisible();
  });

  it("asks for a reason before it revokes, and sends the version that was shown", async () => {
    const calls = start();
    show();
    await userEvent.click(await screen.findByTestId("revoke-1"));
    await userEvent.click(await screen.findByTestId("decide-confirm"));
    expect(calls.some(({ method }) => method === "POST")).toBe(false);
    await userEvent.type(screen.getByTestId("decide-comment"), "not used");
    await userEvent.click(screen.getByTestId("decide-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "POST")?.body).toEqual({ decisions: [{ line: 1, version: 4, decision: "revoke", comment: "not used" }] }));
    await waitFor(() => expect(screen.queryByTestId("decide-dialog")).toBeNull());
  });

  it("keeps the selected lines with the keyboard", async () => {
    const calls = start();
    show();
    await screen.findByTestId("line-2");
    await userEvent.keyboard("jjx1");
    await userEvent.click(await screen.findByTestId("decide-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "POST")?.body).toEqual({ decisions: [{ line: 2, version: 4, decision: "keep" }] }));
  });

  it("shows which lines could not be decided, and why", async () => {
    start({ refuse: true });
    show();
    await userEvent.click(await screen.findByTestId("choose-all"));
    await userEvent.click(await screen.findByTestId("bulk-revoke"));
    await userEvent.type(await screen.findByTestId("decide-comment"), "x");
    await userEvent.click(screen.getByTestId("decide-confirm"));
    expect(within(await screen.findByTestId("refused-lines")).getAllByText("The access was extended.")).toHaveLength(2);
  });

  it("offers no decision to who may not decide", async () => {
    start({ lines: [line(1, { canDecide: false })], roles: ["auditor"], over: { canExport: true } });
    show();
    await screen.findByTestId("line-1");
    expect(screen.queryByTestId("revoke-1")).toBeNull();
    expect(screen.queryByTestId("choose-all")).toBeNull();
    expect(screen.getByTestId("review-report")).toBeVisible();
  });

  it("waits while it is prepared", async () => {
    start({ over: { state: "preparing", deciding: false, flowsUnreadable: true } });
    show();
    expect(await screen.findByTestId("preparing")).toHaveTextContent("The flows cannot be read now.");
  });

  it("shows an error with a retry", async () => {
    serve({ "GET /reviews/R-3": () => problem(503, "unavailable") });
    show();
    expect(await screen.findByTestId("error-state")).toBeVisible();
  });

  it("can be ended early by the security team, with a reason", async () => {
    const calls = start({ roles: ["requester", "security"], over: { canEnd: true } });
    show();
    await userEvent.click(await screen.findByTestId("end-review"));
    await userEvent.type(await screen.findByTestId("end-review-reason"), "wrong scope");
    await userEvent.click(screen.getByTestId("end-review-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/reviews/R-3/end")?.body).toEqual({ reason: "wrong scope" }));
  });
});

describe("the list of access reviews", () => {
  it("begins with what waits for the reader", async () => {
    start();
    renderPage(<ReviewsPage />, { path: "/reviews", at: "/reviews" });
    expect(within(await screen.findByTestId("waiting-reviews")).getByTestId("waits-R-3")).toHaveAttribute("href", "/reviews/R-3?mine=true");
    expect(within(screen.getByTestId("review-R-3")).getByText("1 of 3 decided")).toBeVisible();
    expect(screen.queryByTestId("new-review")).toBeNull();
  });
});

describe("a rule that names a group", () => {
  it("shows the group's name, with the id on hover, and the id of a group that the catalog does not have", async () => {
    serve({
      "GET /me": () => ({ body: me({ roles: ["auditor"] }) }),
      "GET /reviews/R-3": () => ({ body: review({ reviewers: ["application-leader", "group:dba", "group:gone"] }) }),
      "GET /reviews/R-3/lines": () => ({ body: { items: [line(1, { rule: "group:dba" })] } }),
      "GET /groups/dba": () => ({ body: { id: "dba", displayName: "Database team", members: 3 } }),
      "GET /groups/gone": () => problem(404, "not-found"),
    });
    renderPage(<ReviewReportPage />, { path: "/reviews/:id/report", at: "/reviews/R-3/report" });
    const row = within(await screen.findByTestId("report-1"));
    expect(await row.findByText("Group Database team")).toHaveAttribute("title", "dba");
    expect(screen.getAllByText("Group Database team")).toHaveLength(2);
    expect(screen.getByText("Group gone")).toHaveAttribute("title", "gone");
    expect(screen.getByText(/Leader of the application’s team/)).toBeVisible();
  });
});

describe("the report", () => {
  it("says who decided what, for auditors", async () => {
    start({ roles: ["auditor"], over: { state: "closed", canExport: true, deciding: false }, lines: [line(1, { state: "done", outcome: "revoked", decision: "revoke", decidedBy: bob, decidedAt: "2026-11-21T08:00:00Z", comment: "not used", canDecide: false })] });
    renderPage(<ReviewReportPage />, { path: "/reviews/:id/report", at: "/reviews/R-3/report" });
    const row = within(await screen.findByTestId("report-1"));
    expect(row.getByText("not used")).toBeVisible();
    expect(row.getByText("Owner of the resource")).toBeVisible();
    expect(screen.getByTestId("report-csv")).toHaveAttribute("href", "/api/v1/reviews/R-3/report");
  });

  it("names everything that a statement covers", async () => {
    const resources = Array.from({ length: 8 }, (_each, at) => `trnv1:rsc:o:redis:clusters:r${at}`);
    start({ roles: ["auditor"], over: { canExport: true }, lines: [statementLine(["*"], resources)] });
    renderPage(<ReviewReportPage />, { path: "/reviews/:id/report", at: "/reviews/R-3/report" });
    for (const name of resources) expect(within(await screen.findByTestId("report-1")).getByTitle(name)).toBeVisible();
  });

  it("names what a statement covers as the catalog does, with the exact names", async () => {
    const [subject, resource] = ["trnv1:rsc:o:iam:sa:app/0", "trnv1:rsc:o:redis:clusters:r0"];
    const scope = { effect: "Allow" as const, subjects: [subject], subjectRefs: [{ name: subject, title: "Payments API" }], resources: [resource], resourceRefs: [{ name: resource, title: "Orders cache" }] };
    start({ roles: ["auditor"], over: { canExport: true }, lines: [{ ...statementLine([], []), scope }] });
    renderPage(<ReviewReportPage />, { path: "/reviews/:id/report", at: "/reviews/R-3/report" });
    const row = within(await screen.findByTestId("report-1"));
    expect(row.getByTestId("statement")).toHaveTextContent("Lets Payments API reach Orders cache.");
    expect(row.getByText("Payments API")).toHaveAttribute("title", subject);
    expect(row.getByText("Orders cache")).toHaveAttribute("title", resource);
  });
});

describe("another review", () => {
  it("does not show the lines of the one before", async () => {
    const lines = [line(1), line(2)];
    serve({
      "GET /me": () => ({ body: me({ roles: ["security"] }) }),
      "GET /reviews/R-3": () => ({ body: review() }),
      "GET /reviews/R-4": () => ({ body: review({ id: "R-4", name: "Queues" }) }),
      "GET /reviews/R-3/lines": () => ({ body: { items: lines } }),
      "GET /reviews/R-4/lines": unanswered,
    });
    const { router, cache } = renderPage(<ReviewPage />, { path: "/reviews/:id", at: "/reviews/R-3" });
    await screen.findByText("App 1");
    // The page was open before, so that it is shown at once.
    cache.setQueryData(keys.review.one("R-4"), review({ id: "R-4", name: "Queues" }));
    await router.navigate("/reviews/R-4");
    expect(await screen.findByRole("heading", { name: /Queues/ })).toBeVisible();
    expect(screen.queryByText("App 1")).toBeNull();
  });
});
