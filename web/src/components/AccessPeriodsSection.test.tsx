import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { AccessPeriod, AccessPeriodList } from "../api/types";
import { app888, application } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer } from "../testing/render";
import { AccessPeriodsSection } from "./AccessPeriodsSection";

const period = (over: Partial<AccessPeriod> = {}): AccessPeriod => ({
  from: "2026-03-01T09:00:00Z", to: "2026-03-08T09:00:00Z", reach: "allowed", mode: "Enforce", modeKnown: true, reached: ["redis:connect"], uncertain: false,
  tickets: [{ ticket: "T-42", visible: true }], began: [{ kind: "granted", ticket: "T-42", ticketVisible: true }], ended: [{ kind: "expired", ticket: "T-42", ticketVisible: true }], ...over,
});

const list = (items: AccessPeriod[], over: Partial<AccessPeriodList> = {}): AccessPeriodList => ({ items, cut: false, recordsBegin: "2026-01-01T00:00:00Z", ...over });

function start(answer: Answer, at = "/resources/bobs-cluster?periods=app-888") {
  const calls = serve({
    "GET /resources/bobs-cluster/access-periods": () => answer,
    "GET /applications": () => ({ body: { items: [application()] } }),
    [`GET /applications/${app888.id}`]: () => ({ body: application() }),
  });
  renderPage(<AccessPeriodsSection resource="bobs-cluster" />, { path: "/resources/:id", at });
  return calls;
}

describe("when an application could reach a resource", () => {
  it("asks for the application first", () => {
    const calls = start({ body: list([]) }, "/resources/bobs-cluster");
    expect(screen.getByTestId("periods-choose")).toBeVisible();
    expect(calls.some(({ path }) => path.endsWith("/access-periods"))).toBe(false);
  });

  it("shows what began and ended each period", async () => {
    const calls = start({ body: list([period({ from: "2026-03-08T09:00:00Z", to: undefined, reach: "none", reached: [], tickets: [], began: [{ kind: "expired", ticket: "T-42", ticketVisible: true }], ended: [] }), period()]) });
    const row = within(await screen.findByTestId("period-allowed"));
    expect(row.getByText(/granted by/)).toBeVisible();
    expect(row.getByText(/end of the grant/)).toBeVisible();
    expect(row.getAllByRole("link", { name: "T-42" })[0]).toHaveAttribute("href", "/tickets/T-42");
    expect(within(screen.getByTestId("period-none")).getByText("ongoing")).toBeVisible();
    expect(screen.getByTestId("periods-begin")).toHaveTextContent("The records begin");
    expect(screen.getByTestId("periods-csv")).toHaveAttribute("href", "/api/v1/resources/bobs-cluster/access-periods?format=csv&application=app-888");
    expect(calls.find(({ path }) => path.endsWith("/access-periods"))?.search.get("application")).toBe("app-888");
  });

  it("offers no download of nothing", async () => {
    start({ body: list([]) });
    expect(await screen.findByTestId("periods-begin")).toBeVisible();
    expect(screen.queryByTestId("periods-csv")).toBeNull();
  });

  it("does not call what is not known none", async () => {
    start({ body: list([period({ reach: "unknown", reached: [], mode: undefined, modeKnown: false, uncertain: true, tickets: [] })]) });
    const row = within(await screen.findByTestId("period-unknown"));
    expect(row.getAllByText("not known")).toHaveLength(2);
    expect(row.queryByText("none")).toBeNull();
  });

  it("marks a period that the records do not cover", async () => {
    start({ body: list([period({ uncertain: true })], { cut: true }) });
    expect(await screen.findByText("not certain")).toBeVisible();
    expect(screen.getByTestId("periods-begin")).toHaveTextContent("There are older changes");
  });

  it("says why it cannot be shown", async () => {
    start(problem(403, "forbidden", { detail: "Only owners see this." }));
    expect(await screen.findByTestId("error-state")).toHaveTextContent("Only owners see this.");
  });
});
