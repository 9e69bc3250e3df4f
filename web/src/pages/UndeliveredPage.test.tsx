import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Role, Undelivered } from "../api/types";
import { me } from "../testing/fixtures";
import { renderPage, serve } from "../testing/render";
import { UndeliveredPage } from "./UndeliveredPage";

const letter = (over: Partial<Undelivered> = {}): Undelivered => ({
  id: "7", at: "2026-11-20T08:00:00Z", givenUpAt: "2026-11-20T18:00:00Z", kind: "approval-needed", channel: "mail",
  person: { id: "bob", displayName: "Bob Tanaka" }, ticket: "T-42", attempts: 18, problem: "550 no such mailbox", ...over,
});

function start(letters: Undelivered[], roles: Role[] = ["requester", "security"]) {
  let left = letters;
  const calls = serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /notifications/undelivered": () => ({ body: { items: left } }),
    "POST /notifications/undelivered": ({ body }) => {
      const { ids } = body as { ids?: string[] };
      const before = left.length;
      left = ids ? left.filter(({ id }) => !ids.includes(id)) : [];
      return { body: { count: before - left.length } };
    },
  });
  renderPage(<UndeliveredPage />, { path: "/inbox/undelivered", at: "/inbox/undelivered" });
  return calls;
}

describe("undelivered notifications", () => {
  it("says to whom, through what, and why not", async () => {
    start([letter(), letter({ id: "8", person: undefined, channel: "webhook:siem", ticket: undefined, kind: "delegation" })]);
    const row = within(await screen.findByTestId("undelivered-7"));
    expect(row.getByText("Bob Tanaka")).toBeVisible();
    expect(row.getByText("Mail")).toBeVisible();
    expect(row.getByText("550 no such mailbox")).toBeVisible();
    expect(row.getByText("after 18 attempts")).toBeVisible();
    expect(row.getByRole("link", { name: "T-42" })).toHaveAttribute("href", "/tickets/T-42");
    expect(within(screen.getByTestId("undelivered-8")).getByText("webhook:siem")).toBeVisible();
  });

  it("sends one again", async () => {
    const calls = start([letter(), letter({ id: "8" })]);
    await userEvent.click(await screen.findByTestId("retry-7"));
    await waitFor(() => expect(screen.queryByTestId("undelivered-7")).toBeNull());
    expect(screen.getByTestId("undelivered-8")).toBeVisible();
    expect(calls.find((call) => call.method === "POST")?.body).toEqual({ ids: ["7"] });
  });

  it("sends all again only when that is confirmed", async () => {
    const calls = start([letter(), letter({ id: "8" })]);
    await userEvent.click(await screen.findByTestId("retry-all"));
    expect(calls.some((call) => call.method === "POST")).toBe(false);
    await userEvent.click(await screen.findByTestId("retry-all-confirm"));
    expect(await screen.findByText("All notifications were delivered.")).toBeVisible();
    expect(calls.find((call) => call.method === "POST")?.body).toEqual({});
  });

  it("is read-only for auditors, and hidden from others", async () => {
    start([letter(), letter({ id: "8" })], ["auditor"]);
    await screen.findByTestId("undelivered-7");
    expect(screen.queryByTestId("retry-7")).toBeNull();
    expect(screen.queryByTestId("retry-all")).toBeNull();
  });

  it("is not for others", async () => {
    const calls = start([letter()], ["requester"]);
    expect(await screen.findByTestId("not-yours")).toBeVisible();
    expect(calls.map((call) => call.path)).not.toContain("/notifications/undelivered");
  });
});
