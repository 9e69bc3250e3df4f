import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { ModeChange } from "../api/types";
import { bob, resource } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer } from "../testing/render";
import { ModeHistorySection } from "./ModeHistorySection";

function start(answer: Answer) {
  serve({ "GET /resources/bobs-cluster/mode-history": () => answer });
  renderPage(<ModeHistorySection resource={resource({ mine: true })} />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
}

const list = (items: ModeChange[]) => ({ body: { items, cut: false, recordsBegin: "2026-01-01T00:00:00Z" } });

describe("the history of modes", () => {
  it("shows tickets, temporary audits and changes outside of the portal", async () => {
    start(list([
      { at: "2026-03-04T09:00:00Z", kind: "outside", outsideBy: "unknown", object: "ProtectedResource/bobs" },
      { at: "2026-03-03T09:00:00Z", kind: "audit", until: "2026-03-03T12:00:00Z", by: bob, reason: "incident 7" },
      { at: "2026-03-02T09:00:00Z", kind: "ticket", from: "Audit", to: "Enforce", ticket: "T-7", by: bob, reason: "close it" },
    ]));
    const ticket = within(await screen.findByTestId("mode-ticket"));
    expect(ticket.getByText("Audit")).toBeVisible();
    expect(ticket.getByText("Enforce")).toBeVisible();
    expect(ticket.getByText("not in every member")).toBeVisible();
    expect(ticket.getByRole("link", { name: "T-7" })).toHaveAttribute("href", "/tickets/T-7");
    const audit = within(screen.getByTestId("mode-audit"));
    expect(audit.getByText("incident 7")).toBeVisible();
    expect(audit.getByText("Bob Li")).toBeVisible();
    const outside = within(screen.getByTestId("mode-outside"));
    expect(outside.getByText(/is not recorded/)).toBeVisible();
    expect(outside.getByText("not known")).toBeVisible();
    expect(outside.queryByText("→", { exact: false })).toBeNull();
    expect(screen.getByTestId("modes-csv")).toHaveAttribute("href", "/api/v1/resources/bobs-cluster/mode-history?format=csv");
  });

  it("shows the modes of a change outside of the portal whose content is recorded", async () => {
    start(list([{ at: "2026-03-04T09:00:00Z", kind: "outside", outsideBy: "kubernetes:eve", object: "ProtectedResource/bobs", from: "Enforce", to: "Audit" }]));
    const outside = within(await screen.findByTestId("mode-outside"));
    expect(outside.getByText("Enforce")).toBeVisible();
    expect(outside.getByText("Audit")).toBeVisible();
    expect(outside.getByText("kubernetes:eve")).toBeVisible();
    expect(outside.queryByText(/not recorded/)).toBeNull();
  });

  it("says that nothing is recorded, and since when", async () => {
    start(list([]));
    expect(await screen.findByTestId("modes-empty")).toHaveTextContent("No change of the mode is recorded.");
    expect(screen.getByTestId("modes-begin")).toHaveTextContent("The records begin");
    expect(screen.queryByTestId("modes-csv")).toBeNull();
  });

  it("offers a retry when it cannot be read", async () => {
    start(problem(503, "store-unavailable"));
    expect(await screen.findByTestId("error-state")).toBeVisible();
  });
});
