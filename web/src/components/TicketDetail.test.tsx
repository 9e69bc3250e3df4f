import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Ticket } from "../api/types";
import { chooseLanguage } from "../i18n";
import { alice, bob, carol, cluster, event, step, ticket } from "../testing/fixtures";
import { renderPage } from "../testing/render";
import { TicketDetail } from "./TicketDetail";

const show = (over: Partial<Ticket>) => renderPage(<TicketDetail ticket={ticket(over)} />, { path: "/tickets/:id", at: "/tickets/T-42" });
const decided = [step("leader", "approved", [carol]), step("owner", "approved", [bob])];

afterEach(() => chooseLanguage("en"));

describe("a ticket in detail", () => {
  it("says why a member does not have it, in the person's language", async () => {
    await chooseLanguage("zh");
    show({ state: "applying", steps: decided, message: "Waiting for m2.", clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable", { message: "member m2 does not answer at https://m2" })] });
    expect(screen.getByTestId("ticket-message")).toHaveTextContent("等待 m2。");
    expect(screen.getAllByText("成员集群 m2 在 https://m2 没有响应")).toHaveLength(2);
    expect(screen.getByTestId("cluster-state-m1")).toHaveTextContent("已落实");
  });

  it("calls what a member lost taken back", () => {
    show({ state: "revoking", steps: decided, events: [event("submitted", 0), event("approved", 1), event("revoke-requested", 2, { actor: bob })], clusters: [cluster("m1", "Realized"), cluster("m2", "Pending")] });
    expect(screen.getByTestId("cluster-state-m1")).toHaveTextContent("Taken back");
    expect(screen.getByTestId("cluster-state-m2")).toHaveTextContent("Pending");
    expect(within(screen.getByTestId("timeline-cluster-revoke-m1")).getByText("Taken back")).toBeVisible();
  });

  it.each([
    ["pending", true],
    ["revoked", false],
    ["rejected", false],
  ] as const)("promises members only where they are still to come: %s", (state, promised) => {
    show({ state });
    expect(screen.queryAllByText("The member clusters show here once everyone has approved.")).toHaveLength(promised ? 1 : 0);
  });

  it.each([
    ["rejected", [event("submitted", 0), event("step-rejected", 5, { actor: carol, step: "leader" })]],
    ["withdrawn", [event("submitted", 0), event("withdrawn", 5, { actor: alice })]],
    ["revoked", [event("submitted", 0), event("approved", 1), event("revoke-requested", 2, { actor: bob }), event("revoked", 5)]],
    ["expired", [event("submitted", 0), event("approved", 1), event("expired", 5)]],
  ] as const)("says when it ended instead of when it would expire: %s", (state, events) => {
    show({ state, events: [...events], expiresAt: "2026-12-20T10:00:00Z" });
    expect(within(screen.getByTestId("ticket-ended")).getByRole("time")).toHaveAttribute("dateTime", "2026-11-20T10:00:00.005Z");
    expect(screen.queryByText("Expires")).toBeNull();
  });

  it.each([
    ["effective", 1],
    ["revoking", 0],
  ] as const)("promises an end only to what is in force: %s", (state, times) => {
    show({ state, expiresAt: "2026-12-20T10:00:00Z" });
    expect(screen.queryAllByText("Expires")).toHaveLength(times);
    expect(screen.queryByTestId("ticket-ended")).toBeNull();
  });

  it("folds a long reason and opens it on demand", async () => {
    show({ reason: "Checkout needs it. ".repeat(60), requester: alice });
    const toggle = screen.getByRole("button", { name: "Show all of it", expanded: false });
    await userEvent.click(toggle);
    expect(screen.getByRole("button", { name: "Show less", expanded: true })).toBeVisible();
  });

  it("leaves a short reason alone", () => {
    show({});
    expect(screen.queryByRole("button", { name: "Show all of it" })).toBeNull();
  });
});
