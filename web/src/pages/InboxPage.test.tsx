import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { InboxItem } from "../api/types";
import { renderPage, serve } from "../testing/render";
import { NotificationMenu } from "../shell/NotificationMenu";
import { InboxPage } from "./InboxPage";

const notice = (over: Partial<InboxItem> = {}): InboxItem => ({ id: "1", at: "2026-11-20T10:00:00Z", kind: "approval-needed", title: "Alice Zhang asks you to decide", body: "Checkout needs it.", ticket: "T-42", read: false, ...over });

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

describe("notifications", () => {
  it("shows what is unread as unread, and reads it when it is opened", async () => {
    const calls = mailbox([notice(), notice({ id: "2", title: "Old", read: true })]);
    const { router } = renderPage(<InboxPage />, { path: "/inbox", at: "/inbox" });
    expect(await screen.findByTestId("notice-1")).toHaveAttribute("data-value", "unread");
    expect(screen.getByTestId("notice-2")).toHaveAttribute("data-value", "read");
    await userEvent.click(screen.getByRole("link", { name: "Alice Zhang asks you to decide" }));
    expect(router.state.location.pathname).toBe("/tickets/T-42");
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toEqual({ ids: ["1"], read: true }));
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
