import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { NewSavedView, SavedView, SharedView } from "../api/types";
import { SharedViewPage } from "../pages/SharedViewPage";
import { bob } from "../testing/fixtures";
import { problem, renderPage, renderRoutes, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { SavedViews } from "./SavedViews";

const key = "acp-saved-flows:alice";
const saved = (over: Partial<SavedView> = {}): SavedView => ({ id: "1", page: "flows", name: "Denied", query: "decision=denied", savedAt: "2026-11-20T10:00:00Z", ...over });

/** start renders the views of the flows page against a portal that keeps the views which it is sent. */
function start(stored: SavedView[] = [], { query = "", over = {} }: { query?: string; over?: Record<string, (call: Call) => Answer> } = {}) {
  let views = stored;
  const calls = serve({
    "GET /me/views": () => ({ body: { items: views } }),
    "PUT /me/views": ({ body }) => {
      const next = saved({ id: String(views.length + 1), ...(body as NewSavedView) });
      views = [next, ...views.filter(({ page, name }) => page !== next.page || name !== next.name)];
      return { body: next };
    },
    "PUT /me/views/1/link": () => {
      views = views.map((view) => (view.id === "1" ? { ...view, link: "KEY" } : view));
      return { body: views.find(({ id }) => id === "1") };
    },
    "DELETE /me/views/1/link": () => {
      views = stored;
      return { body: {} };
    },
    "DELETE /me/views/1": () => {
      views = views.filter(({ id }) => id !== "1");
      return { body: {} };
    },
    ...over,
  });
  return { calls, ...renderPage(<SavedViews page="flows" query={query} />, { path: "/flows", at: "/flows" }) };
}

const openViews = async () => {
  await userEvent.click(await screen.findByTestId("saved-open"));
  return screen.findByRole("dialog", { name: "Views" });
};
const names = (dialog: HTMLElement) => within(dialog).queryAllByTestId("saved-view").map((row) => within(row).getByRole("link").textContent);

describe("saved views", () => {
  it("are those of the page, and lead to its filters", async () => {
    const { router } = start([saved(), saved({ id: "2", page: "requests", name: "Failed", query: "state=failed" })]);
    const dialog = await openViews();
    await within(dialog).findByTestId("saved-view");
    expect(names(dialog)).toEqual(["Denied"]);
    await userEvent.click(within(dialog).getByRole("link", { name: "Denied" }));
    expect(router.state.location.pathname + router.state.location.search).toBe("/flows?decision=denied");
  });

  it("are saved by keyboard under a name", async () => {
    const { calls } = start([], { query: "port=80" });
    await screen.findByTestId("saved-open");
    await userEvent.tab();
    await userEvent.keyboard("{Enter}");
    const dialog = await screen.findByRole("dialog", { name: "Views" });
    expect(await within(dialog).findByText(/No filters are saved yet/)).toBeVisible();
    within(dialog).getByTestId("saved-name").focus();
    await userEvent.keyboard(" Web {Enter}");
    await waitFor(() => expect(names(dialog)).toEqual(["Web"]));
    expect(calls.find(({ method }) => method === "PUT")?.body).toEqual({ page: "flows", name: "Web", query: "port=80" });
    expect(within(dialog).getByTestId("saved-name")).toHaveValue("");
    await userEvent.keyboard("{Escape}");
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });

  it("cannot be saved without filters", async () => {
    start();
    const dialog = await openViews();
    expect(await within(dialog).findByText(/No filters are saved yet/)).toBeVisible();
    expect(within(dialog).queryByTestId("saved-name")).toBeNull();
  });

  it("are shared with a link, until that is ended", async () => {
    const { calls } = start([saved()]);
    const user = userEvent.setup();
    const dialog = await openViews();
    expect(within(dialog).queryByTestId("saved-shared")).toBeNull();
    await user.click(await within(dialog).findByRole("button", { name: "Share “Denied” and copy its link" }));
    expect(await screen.findByText(/Link to “Denied” copied/)).toBeVisible();
    expect(await navigator.clipboard.readText()).toBe(`${location.origin}/views/KEY`);
    expect(await within(dialog).findByTestId("saved-shared")).toHaveAttribute("href", "/views/KEY");
    await user.click(within(dialog).getByRole("button", { name: "Copy the link to “Denied”" }));
    expect(calls.filter(({ method }) => method === "PUT")).toHaveLength(1);
    await user.click(within(dialog).getByRole("button", { name: /Stop sharing “Denied”/ }));
    await waitFor(() => expect(within(dialog).queryByTestId("saved-shared")).toBeNull());
    await waitFor(() => expect(dialog).toContainElement(document.activeElement as HTMLElement));
    expect(within(dialog).getByRole("button", { name: "Share “Denied” and copy its link" })).toBeVisible();
  });

  it("say so when they cannot be shared", async () => {
    start([saved()], { over: { "PUT /me/views/1/link": () => problem(503, "store-unavailable") } });
    const user = userEvent.setup();
    const dialog = await openViews();
    await user.click(await within(dialog).findByTestId("saved-copy"));
    expect(await within(dialog).findByTestId("error-state")).toBeVisible();
    expect(screen.queryByText(/copied/)).toBeNull();
  });

  it("say so when the browser does not permit copying", async () => {
    start([saved({ link: "KEY" })]);
    const user = userEvent.setup();
    vi.spyOn(navigator.clipboard, "writeText").mockRejectedValue(new Error("not allowed"));
    const dialog = await openViews();
    await user.click(await within(dialog).findByRole("button", { name: "Copy the link to “Denied”" }));
    expect(await screen.findByText(/did not permit copying/)).toBeVisible();
  });

  it("are removed, also when another tab did that before", async () => {
    const { calls } = start([saved(), saved({ id: "2", name: "Web" })], { over: { "DELETE /me/views/2": () => problem(404, "not-found") } });
    const dialog = await openViews();
    await userEvent.click(await within(dialog).findByRole("button", { name: "Delete “Denied”" }));
    await waitFor(() => expect(names(dialog)).toEqual(["Web"]));
    await waitFor(() => expect(dialog).toContainElement(document.activeElement as HTMLElement));
    await userEvent.click(within(dialog).getByRole("button", { name: "Delete “Web”" }));
    await waitFor(() => expect(calls.filter(({ path, method }) => method === "GET" && path === "/me/views")).toHaveLength(3));
    expect(within(dialog).queryByTestId("error-state")).toBeNull();
  });

  it("show why they cannot be read, saved or removed", async () => {
    let fails = true;
    start([saved()], {
      query: "port=80",
      over: {
        "GET /me/views": () => (fails ? problem(503, "store-unavailable") : { body: { items: [saved()] } }),
        "PUT /me/views": () => problem(409, "conflict", { detail: "You have saved 50 views." }),
        "DELETE /me/views/1": () => problem(503, "store-unavailable"),
      },
    });
    const dialog = await openViews();
    const retry = await within(dialog).findByRole("button", { name: "Try again" });
    fails = false;
    await userEvent.click(retry);
    expect(await within(dialog).findByRole("link", { name: "Denied" })).toBeVisible();
    await userEvent.type(within(dialog).getByTestId("saved-name"), "Web{Enter}");
    expect(await within(dialog).findByText("You have saved 50 views.")).toBeVisible();
    expect(within(dialog).getByTestId("saved-name")).toHaveValue("Web");
    await userEvent.click(within(dialog).getByRole("button", { name: "Delete “Denied”" }));
    await waitFor(() => expect(within(dialog).getAllByTestId("error-state")).toHaveLength(2));
  });
});

describe("views of an earlier version", () => {
  const puts = (calls: Call[]) => calls.filter(({ method }) => method === "PUT").map(({ body }) => body as NewSavedView);

  it("are taken over once, the oldest first, and lose none", async () => {
    localStorage.setItem(key, JSON.stringify([{ name: "Web", search: "?port=80" }, { name: "Denied", search: "?q=redis" }, { name: "Same", search: "?b=2&a=1" }]));
    localStorage.setItem("acp-saved-flows:bob", JSON.stringify([{ name: "Bob's", search: "?port=1" }]));
    const { calls } = start([saved(), saved({ id: "2", name: "Same", query: "a=1&b=2" })]);
    await waitFor(() => expect(localStorage.getItem(key)).toBeNull());
    expect(puts(calls)).toEqual([
      { page: "flows", name: "Denied (2)", query: "q=redis" },
      { page: "flows", name: "Web", query: "port=80" },
    ]);
    expect(localStorage.getItem("acp-saved-flows:bob")).not.toBeNull();
    const dialog = await openViews();
    await waitFor(() => expect(names(dialog)).toEqual(["Web", "Denied (2)", "Denied", "Same"]));
  });

  it("stay in the browser while the portal cannot store them", async () => {
    localStorage.setItem(key, JSON.stringify([{ name: "Web", search: "?port=80" }, { name: "Old", search: "?port=81" }]));
    let left = 1;
    const { calls } = start([], { over: { "PUT /me/views": ({ body }) => (left-- > 0 ? { body: saved(body as NewSavedView) } : problem(503, "store-unavailable")) } });
    await waitFor(() => expect(puts(calls)).toHaveLength(2));
    await waitFor(() => expect(JSON.parse(localStorage.getItem(key) ?? "[]")).toEqual([{ name: "Web", search: "?port=80" }]));
  });

  it("are dropped if the portal would never store them", async () => {
    localStorage.setItem(key, JSON.stringify([{ name: "All", search: "" }]));
    start([], { over: { "PUT /me/views": () => problem(422, "invalid") } });
    await waitFor(() => expect(localStorage.getItem(key)).toBeNull());
  });

  it("cost no call if there are none", async () => {
    const { calls } = start();
    await screen.findByTestId("saved-open");
    expect(calls).toEqual([]);
  });
});

describe("a shared view", () => {
  const shared = (over: Partial<SharedView> = {}): SharedView => ({ page: "flows", name: "Denied", query: "decision=denied", by: bob, own: false, ...over });

  function open(view: Answer, stored: SavedView[] = []) {
    const calls = serve({
      "GET /views/KEY": () => view,
      "GET /me/views": () => ({ body: { items: stored } }),
      "PUT /me/views": ({ body }) => ({ body: saved({ id: "9", ...(body as NewSavedView) }) }),
    });
    const routes = [{ path: "/views/:link", element: <SharedViewPage /> }, { path: "/flows", element: <SavedViews page="flows" query="decision=denied" /> }];
    return { calls, ...renderRoutes(routes, "/views/KEY") };
  }

  it("opens its page with its filters, and says who shares it", async () => {
    const { router } = open({ body: shared() });
    expect(await screen.findByTestId("shared-view")).toHaveTextContent("“Denied”, shared by Bob Li");
    expect(router.state.location.pathname + router.state.location.search).toBe("/flows?decision=denied");
  });

  it("is kept as a view of one’s own, beside another of the same name", async () => {
    const { calls } = open({ body: shared() }, [saved({ query: "port=80" })]);
    await userEvent.click(await screen.findByTestId("shared-keep"));
    expect(await screen.findByText("“Denied (2)” is among your saved views")).toBeVisible();
    expect(calls.find(({ method }) => method === "PUT")?.body).toEqual({ page: "flows", name: "Denied (2)", query: "decision=denied" });
  });

  it("cannot be kept twice", async () => {
    open({ body: shared({ query: "q=a&decision=denied" }) }, [saved({ name: "Mine", query: "decision=denied&q=a" })]);
    await screen.findByTestId("shared-view");
    expect(screen.queryByTestId("shared-keep")).toBeNull();
  });

  it("is not announced to the person who shares it", async () => {
    const { router } = open({ body: shared({ own: true }) });
    await waitFor(() => expect(router.state.location.pathname).toBe("/flows"));
    await screen.findByTestId("saved-open");
    expect(screen.queryByTestId("shared-view")).toBeNull();
  });

  it("that is not shared any more leads to no page", async () => {
    const { router } = open(problem(404, "not-found"));
    expect(await screen.findByTestId("shared-view-missing")).toBeVisible();
    expect(router.state.location.pathname).toBe("/views/KEY");
  });
});
