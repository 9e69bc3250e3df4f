import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { InboxItem } from "../api/types";
import { chooseLanguage } from "../i18n";
import { ZoneContext } from "../lib/use-zone";
import { renderPage, serve, verbatim } from "../testing/render";
import { NotificationMenu } from "../shell/NotificationMenu";
import { InboxPage } from "./InboxPage";

const notice = (over: Partial<InboxItem> = {}): InboxItem => ({ id: "1", at: "2026-11-20T10:00:00Z", kind: "approval-needed", title: verbatim("Alice Zhang asks you to decide"), body: verbatim("Checkout needs it."), items: [], notes: [], ticket: "T-42", read: false, ...over });

/** Answers as the portal does: what is marked stays marked. */
function mailbox(items: InboxItem[]) {
  return serve({
    "GET /me/inbox": ({ search }) => ({ body: { unread: items.filter((item) => !item.read).length, items: search.get("unread") ? items.filter((item) => !item.read) : items } }),
    "POST /me/inbox": ({ body }) => {
      const { ids, read } = body as { ids?: string[]; read: boolean };
      for (const item of items) if (!ids || ids.includes(item.id)) item.read = read;
      return { status: 204, body: undefined };
    },
  });
}

afterEach(() => chooseLanguage("en"));

describe("notifications", () => {
  it("shows what is unread as unread, and reads it when it is opened", async () => {
    const calls = mailbox([notice(), notice({ id: "2", title: verbatim("Old"), read: true })]);
    const { router } = renderPage(<InboxPage />, { path: "/inbox", at: "/inbox" });
    expect(await screen.findByTestId("notice-1")).toHaveAttribute("data-value", "unread");
    expect(screen.getByTestId("notice-2")).toHaveAttribute("data-value", "read");
    await userEvent.click(screen.getByRole("link", { name: "Alice Zhang asks you to decide" }));
    expect(router.state.location.pathname).toBe("/tickets/T-42");
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toEqual({ ids: ["1"], read: true }));
  });

  it("shortens resource names, with the exact name on hover", async () => {
    mailbox([notice({ title: verbatim("T-42: anyone → trnv1:rsc:o:redis:clusters:*") })]);
    renderPage(<InboxPage />, { path: "/inbox", at: "/inbox" });
    expect(await screen.findByRole("link", { name: "T-42: anyone → redis / *" })).toBeVisible();
    expect(screen.getByText("redis / *")).toHaveAttribute("title", "trnv1:rsc:o:redis:clusters:*");
  });

  it.each<["en" | "zh", RegExp, RegExp]>([
    ["en", /^T-42: expires Mar 9, 2026, 6:00\sPM: orders → cache and 2 more$/, /^This access ends at Mar 9, 2026, 6:00\sPM\. .*\n\n- orders → cache\n- and 2 more\n\nReason: the checkout$/],
    ["zh", /^T-42：将于 2026年3月9日 18:00 到期：orders → cache 及另外 2 项$/, /^这项访问将于 2026年3月9日 18:00 终止。.*\n\n- orders → cache\n- 以及另外 2 项\n\n理由：the checkout$/],
  ])("is in the language of the page (%s) and in the reader's time zone", async (language, title, body) => {
    const until = "2026-03-09T10:00:00Z";
    const subject = { code: "notification.subject-and-more", params: { item: "orders → cache", count: 2 }, text: "orders → cache and 2 more" };
    mailbox([
      notice({
        kind: "expires-soon",
        title: { code: "notification.expires-soon.title", params: { subject, ticket: "T-42", until }, text: "T-42: expires 2026-03-09 10:00 UTC: orders → cache and 2 more" },
        body: { code: "notification.expires-soon.body", params: { until }, text: "This access ends at 2026-03-09 10:00 UTC." },
        items: [
          { code: "notification.item", params: { item: "orders → cache" }, text: "- orders → cache" },
          { code: "notification.more-items", params: { count: 2 }, text: "- and 2 more" },
        ],
        notes: [{ code: "notification.reason", params: { reason: "the checkout" }, text: "Reason: the checkout" }],
      }),
    ]);
    await chooseLanguage(language);
    renderPage(<ZoneContext.Provider value="Asia/Shanghai"><InboxPage /></ZoneContext.Provider>, { path: "/inbox", at: "/inbox" });
    expect(await screen.findByRole("link", { name: title })).toBeVisible();
    expect(screen.getByText((_, element) => element?.tagName === "P" && body.test(element.textContent))).toBeVisible();
  });

  it("marks one as not read, and all as read", async () => {
    const calls = mailbox([notice({ read: true }), notice({ id: "2" })]);
    renderPage(<InboxPage />, { path: "/inbox", at: "/inbox" });
    await userEvent.click(await screen.findByTestId("mark-1"));
    await waitFor(() => expect(screen.getByTestId("notice-1")).toHaveAttribute("data-value", "unread"));
    await userEvent.click(screen.getByTestId("read-all"));
    await waitFor(() => expect(screen.queryByTestId("read-all")).toBeNull());
    expect(calls.filter((call) => call.method === "POST").map((call) => call.body)).toEqual([{ ids: ["1"], read: false }, { read: true }]);
  });

  it("shows only unread notifications for an address with that filter", async () => {
    mailbox([notice(), notice({ id: "2", read: true })]);
    renderPage(<InboxPage />, { path: "/inbox", at: "/inbox?show=unread" });
    await screen.findByTestId("notice-1");
    expect(screen.queryByTestId("notice-2")).toBeNull();
  });

  it("shows that there are no notifications", async () => {
    mailbox([]);
    renderPage(<InboxPage />, { path: "/inbox", at: "/inbox" });
    expect(await screen.findByText(/There are no notifications yet/)).toBeVisible();
  });

  it("shows a notification of an unknown kind", async () => {
    mailbox([notice({ kind: "something-new" })]);
    renderPage(<InboxPage />, { path: "/inbox", at: "/inbox" });
    expect(await screen.findByTestId("notice-1")).toHaveTextContent("Notification");
  });

  it("rings in the top bar with a number, and opens the newest", async () => {
    mailbox([notice()]);
    renderPage(<NotificationMenu unread={1} />, { path: "/", at: "/" });
    const bell = screen.getByRole("button", { name: "Notifications, 1 unread" });
    await userEvent.click(bell);
    expect(await screen.findByTestId("notice-1")).toBeInTheDocument();
    await userEvent.click(screen.getByTestId("bell-read-all"));
    expect(await screen.findByTestId("bell-empty")).toBeInTheDocument();
  });
});
