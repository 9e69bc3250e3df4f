import { fireEvent, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { PastAccess, PastAccessList } from "../api/types";
import { alice, app888, bobsCluster, resource } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer } from "../testing/render";
import { PastAccessSection } from "./PastAccessSection";
import { ZoneContext } from "../lib/use-zone";

const row = (over: Partial<PastAccess> = {}): PastAccess => ({
  effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], reached: ["redis:connect"], policy: "p", sid: "t-42-1", ticket: "T-42", ticketItem: 0, ticketVisible: true,
  requester: alice, reason: "checkout reads carts", since: "2026-03-01T09:00:00Z", counting: true, uncertain: false, ...over,
});

const list = (over: Partial<PastAccessList> = {}): PastAccessList => ({ at: "2026-03-02T01:30:00Z", items: [], gaps: [], onboarded: true, modeKnown: true, mode: "Enforce", open: false, limited: false, ...over });

const gap = { kind: "restored", at: "2026-03-03T00:00:00Z", message: verbatim("The database was restored.") } as const;

function start(answer: Answer, at = "/resources/bobs-cluster?past=2026-03-02T01:30:00.000Z") {
  const calls = serve({ "GET /resources/bobs-cluster/past-access": () => answer });
  renderPage(
    <ZoneContext value="Asia/Shanghai">
      <PastAccessSection resource={resource({ mine: true })} />
    </ZoneContext>,
    { path: "/resources/:id", at },
  );
  return calls;
}

describe("who could reach a resource", () => {
  it("asks for a time first, in the reader's time zone", async () => {
    const calls = start({ body: list({ items: [row()] }) }, "/resources/bobs-cluster");
    expect(screen.getByTestId("past-choose")).toBeVisible();
    expect(calls).toHaveLength(0);
    fireEvent.change(screen.getByTestId("past-at"), { target: { value: "2026-03-02T09:30" } });
    await userEvent.click(screen.getByTestId("past-show"));
    expect(await screen.findByTestId("past-row-t-42-1")).toBeVisible();
    expect(calls[0]?.search.get("at")).toBe("2026-03-02T01:30:00.000Z");
  });

  it("shows the ticket that gave the access, its reason, and what was let through", async () => {
    start({ body: list({ items: [row(), row({ sid: "t-43-1", ticket: "T-43", ticketVisible: false, reason: undefined, reached: [], subject: { name: "n", title: "Other" } })] }) });
    const first = within(await screen.findByTestId("past-row-t-42-1"));
    expect(first.getByRole("link", { name: "T-42" })).toHaveAttribute("href", "/tickets/T-42");
    expect(first.getByText("checkout reads carts")).toBeVisible();
    expect(first.getByText("let through")).toBeVisible();
    const second = within(screen.getByTestId("past-row-t-43-1"));
    expect(second.queryByRole("link", { name: "T-43" })).toBeNull();
    expect(second.getByText("refused")).toBeVisible();
    expect(screen.getByTestId("past-csv")).toHaveAttribute("href", "/api/v1/resources/bobs-cluster/past-access?format=csv&at=2026-03-02T01%3A30%3A00Z");
  });

  it("shows the last use that the flows prove, and never says that an access was not used", async () => {
    start({ body: list({ items: [row({ lastUsed: "2026-03-02T00:00:00Z" }), row({ sid: "t-43-1" })] }) });
    const used = within(await screen.findByTestId("past-row-t-42-1")).getByTestId("past-use");
    expect(used).toHaveAttribute("data-value", "used");
    expect(within(used).getByRole("link")).toHaveAttribute("href", "/flows?policy=p&sid=t-42-1&window=31d");
    expect(within(screen.getByTestId("past-row-t-43-1")).getByTestId("past-use")).toHaveTextContent("not known");
  });

  it.each([
    ["nobody, if the records cover the time", list(), "The records cover this time: no statement gave anyone access.", 0],
    ["that it is not known, if they do not", list({ gaps: [gap] }), "it is not known that nobody had access", 1],
    ["that the mode refused nothing", list({ mode: "Audit", open: true }), "but the mode refused nothing", 1],
  ])("says %s, and offers a file only if it has a line", async (_, body, text, files) => {
    start({ body });
    expect(await screen.findByTestId("past-empty")).toHaveTextContent(text);
    expect(screen.queryAllByTestId("past-csv")).toHaveLength(files);
  });

  it("says what the records do not cover, and which lines are not certain", async () => {
    start({ body: list({ gaps: [gap], modeKnown: false, mode: undefined, items: [row({ uncertain: true })] }) });
    expect(await screen.findByTestId("history-gaps")).toHaveTextContent("The database was restored.");
    expect(screen.getByTestId("past-mode-unknown")).toBeVisible();
    expect(screen.getByText("not certain")).toBeVisible();
  });

  it("says that the last uses cannot be read", async () => {
    start({ body: list({ items: [row()], usesMessage: verbatim("The last uses cannot be read now.") }) });
    expect(await screen.findByTestId("past-uses-message")).toHaveTextContent("The last uses cannot be read now.");
  });

  it("offers a retry when the records cannot be read", async () => {
    start(problem(503, "store-unavailable"));
    expect(await screen.findByTestId("error-state")).toBeVisible();
  });
});
