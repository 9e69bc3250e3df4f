import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { NewSavedView, SavedView } from "../api/types";
import { approved, cluster, ticket, ticketOf, carol } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { RequestsPage } from "./RequestsPage";

function start(at: string, list: (call: Call) => Answer = () => ({ body: { items: [ticket()] } })) {
  const calls = serve({ "GET /tickets": list });
  return { calls, ...renderPage(<RequestsPage />, { path: "/requests", at }) };
}

describe("requests", () => {
  it("reads the filters of the address", async () => {
    const { calls } = start("/requests?view=all&state=effective&state=revoked&resource=bobs-cluster");
    await screen.findByTestId("ticket-row-T-42");
    const search = calls.find((call) => call.path === "/tickets")?.search;
    expect([search?.get("view"), search?.getAll("state"), search?.get("resource")]).toEqual(["all", ["effective", "revoked"], "bobs-cluster"]);
  });

  it("ignores what an address cannot mean", async () => {
    const { calls } = start("/requests?view=everything&state=sleeping");
    await screen.findByTestId("ticket-row-T-42");
    expect([calls[0]?.search.get("view"), calls[0]?.search.getAll("state")]).toEqual(["mine", []]);
  });

  it("puts a chosen filter into the address and keeps the others", async () => {
    const { router } = start("/requests?state=pending");
    await userEvent.click(await screen.findByRole("radio", { name: "Decided by me" }));
    await waitFor(() => expect(router.state.location.search).toBe("?state=pending&view=decided"));
    await userEvent.click(screen.getByRole("radio", { name: "My requests" }));
    await waitFor(() => expect(router.state.location.search).toBe("?state=pending"));
  });

  it("offers to clear filters that match nothing", async () => {
    const { router } = start("/requests?state=failed&application=app-888", () => ({ body: { items: [] } }));
    await userEvent.click(await screen.findByRole("button", { name: "Clear filters" }));
    await waitFor(() => expect(router.state.location.search).toBe(""));
  });

  it("shows the next page below the first", async () => {
    const { calls } = start("/requests", ({ search }) => ({ body: search.get("cursor") === "c2" ? { items: [ticket({ id: "T-7" })] } : { items: [ticket()], nextCursor: "c2" } }));
    await userEvent.click(await screen.findByTestId("load-more"));
    expect(await screen.findByTestId("ticket-row-T-7")).toBeVisible();
    expect(screen.getByTestId("ticket-row-T-42")).toBeVisible();
    expect(screen.queryByTestId("load-more")).toBeNull();
    expect(calls.map((call) => call.search.get("cursor"))).toEqual([null, "c2"]);
  });

  it("lets the server sort, and restores the sort and the pages of an address", async () => {
    const page: Record<string, Answer> = {
      "updated ": { body: { items: [ticket({ id: "T-7" }), ticket({ id: "T-3" })], nextCursor: "u2" } },
      "updated u2": { body: { items: [ticket({ id: "T-1" })], nextCursor: "u3" } },
      "-updated ": { body: { items: [ticket({ id: "T-9" }), ticket({ id: "T-8" })], nextCursor: "d2" } },
    };
    const { calls, router } = start("/requests?view=all&sort=updated&pages=2", ({ search }) => page[`${search.get("sort") ?? ""} ${search.get("cursor") ?? ""}`] ?? { body: { items: [ticket(), ticket({ id: "T-41" })], nextCursor: "c2" } });
    await screen.findByTestId("ticket-row-T-1");
    expect(screen.getAllByTestId(/^ticket-row/).map((row) => row.dataset["testid"])).toEqual(["ticket-row-T-7", "ticket-row-T-3", "ticket-row-T-1"]);
    expect(screen.getByRole("columnheader", { name: "Last change" })).toHaveAttribute("aria-sort", "ascending");
    expect(screen.getByRole("columnheader", { name: "State" })).not.toHaveAttribute("aria-sort");
    await userEvent.click(screen.getByRole("button", { name: "Last change" }));
    await screen.findByTestId("ticket-row-T-9");
    await waitFor(() => expect(router.state.location.search).toBe("?view=all&sort=-updated"));
    await userEvent.click(screen.getByRole("button", { name: "Last change" }));
    await screen.findByTestId("ticket-row-T-42");
    expect(router.state.location.search).toBe("?view=all");
    expect(calls.map(({ search }) => [search.get("sort"), search.get("cursor")])).toEqual([["updated", null], ["updated", "u2"], ["-updated", null], [null, null]]);
  });

  it("asks the server for no order that it does not have", async () => {
    const { calls } = start("/requests?sort=-requester");
    await screen.findByTestId("ticket-row-T-42");
    expect(calls[0]?.search.get("sort")).toBeNull();
  });

  it("shows each ticket in one line of steps and clusters", async () => {
    start("/requests", () => ({ body: { items: [ticketOf("applying", { steps: [approved("leader", carol)], clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable")] })] } }));
    const line = await screen.findByTestId("live-line-T-42");
    expect([...line.children].map((item) => [item.textContent, item.getAttribute("data-value")])).toEqual([
      ["leader: Approved", "approved"],
      ["m1: Realized", "Realized"],
      ["m2: Unreachable", "Unreachable"],
    ]);
  });

  it("says what failed, with an id to report, and tries again when asked", async () => {
    let broken = true;
    start("/requests", () => (broken ? problem(500, "internal") : { body: { items: [ticket()] } }));
    expect(await screen.findByText("Id to report: req-1")).toBeVisible();
    broken = false;
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(await screen.findByTestId("ticket-row-T-42")).toBeVisible();
  });

  it("filters by kind, words, person and end, as the address says", async () => {
    const { calls } = start("/requests?view=all&kind=mode&kind=extend&q=orders&requester=bob&expiring=14");
    await screen.findByTestId("ticket-row-T-42");
    const search = calls.find((call) => call.path === "/tickets")?.search;
    expect([search?.getAll("kind"), search?.get("q"), search?.get("requester"), search?.get("expiringWithinSeconds")]).toEqual([["extend", "mode"], "orders", "bob", "1209600"]);
  });

  it("puts typed words into the address", async () => {
    const { router } = start("/requests");
    await userEvent.type(await screen.findByTestId("requests-search"), "orders");
    await waitFor(() => expect(router.state.location.search).toBe("?q=orders"));
  });

  it("saves its filters under a name, and leads back to them", async () => {
    let items: SavedView[] = [];
    const calls = serve({
      "GET /tickets": () => ({ body: { items: [ticket()] } }),
      "GET /me/views": () => ({ body: { items } }),
      "PUT /me/views": ({ body }) => {
        const view = { id: "1", savedAt: "2026-11-20T10:00:00Z", ...(body as NewSavedView) };
        items = [view];
        return { body: view };
      },
    });
    const { router } = renderPage(<RequestsPage />, { path: "/requests", at: "/requests?state=failed" });
    await userEvent.click(await screen.findByTestId("saved-open"));
    await userEvent.type(await screen.findByTestId("saved-name"), "Broken");
    await userEvent.click(screen.getByTestId("saved-save"));
    await screen.findByRole("link", { name: "Broken" });
    expect(calls.find(({ method }) => method === "PUT")?.body).toEqual({ page: "requests", name: "Broken", query: "state=failed" });
    await router.navigate("/requests");
    await userEvent.click(await screen.findByRole("link", { name: "Broken" }));
    await waitFor(() => expect(router.state.location.search).toBe("?state=failed"));
  });
});
