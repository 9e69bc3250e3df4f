import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Downgrade, Role } from "../api/types";
import { alice, bobsCluster, me } from "../testing/fixtures";
import { problem, renderPage, serve, unanswered } from "../testing/render";
import type { Answer } from "../testing/render";
import { DowngradePage } from "./DowngradePage";

const extent = (over: Partial<Downgrade> = {}): Downgrade => ({ scope: "all", resources: 40, enforced: 30, open: 0, members: ["m1", "m2"], seconds: 1.5, classes: [{ name: "redis", enforced: 20, open: 0 }], active: [], canAct: true, ...over });
const opened = { scope: "all" as const, until: "2026-11-21T12:00:00Z", reason: "redis is down", by: alice, resources: 30, effective: 29 };

function start(role: Role, answer: Downgrade, post: () => Answer = () => ({ body: answer })) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles: [role] }) }),
    "GET /downgrade": ({ search }) => ({ body: search.get("scope") === "class" ? { ...answer, scope: "class", class: "redis", enforced: 20 } : answer }),
    "GET /fleet": () => ({ body: { items: [], reported: true } }),
    "POST /downgrade": post,
    "DELETE /downgrade": () => ({ body: extent() }),
  });
  return Object.assign(calls, renderPage(<DowngradePage />, { path: "/downgrade", at: "/downgrade" }));
}

async function fill(typed: string) {
  await userEvent.click(await screen.findByTestId("downgrade-begin"));
  await userEvent.type(screen.getByTestId("downgrade-reason"), "redis is down");
  await userEvent.type(screen.getByTestId("downgrade-typed"), typed);
  await userEvent.click(screen.getByTestId("downgrade-confirm"));
}

describe("the downgrade", () => {
  it("says what it opens, and begins only with an end, a reason and the typed word", async () => {
    const calls = start("security", extent());
    await userEvent.click(await screen.findByTestId("downgrade-begin"));
    expect(screen.getByTestId("downgrade-extent")).toHaveTextContent("30 resources allow all connections at once, in m1 and m2");
    await userEvent.click(screen.getByTestId("downgrade-confirm"));
    expect(await screen.findByText("That is not the word.")).toBeVisible();
    expect(calls.some(({ method }) => method === "POST")).toBe(false);
    await userEvent.type(screen.getByTestId("downgrade-reason"), "redis is down");
    await userEvent.type(screen.getByTestId("downgrade-typed"), "everything");
    await userEvent.click(screen.getByTestId("downgrade-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "POST")?.body).toMatchObject({ scope: "all", reason: "redis is down" }));
    await waitFor(() => expect(screen.queryByTestId("downgrade-dialog")).toBeNull());
  });

  it("of a class names the class, which is what has to be typed", async () => {
    const calls = start("security", extent());
    await userEvent.click(within(await screen.findByTestId("downgrade-scope")).getByText("One class"));
    await waitFor(() => expect(screen.getByTestId("extent-would")).toHaveTextContent("20"));
    await fill("redis");
    await waitFor(() => expect(calls.find(({ method }) => method === "POST")?.body).toMatchObject({ scope: "class", class: "redis" }));
  });

  it("does not show the extent of all resources while that of a class is read", async () => {
    serve({
      "GET /me": () => ({ body: me({ roles: ["security"] }) }),
      "GET /downgrade": ({ search }) => (search.get("scope") === "class" ? unanswered() : { body: extent() }),
      "GET /fleet": () => ({ body: { items: [], reported: true } }),
    });
    renderPage(<DowngradePage />, { path: "/downgrade", at: "/downgrade" });
    await userEvent.click(within(await screen.findByTestId("downgrade-scope")).getByText("One class"));
    await waitFor(() => expect(screen.queryByTestId("extent")).toBeNull());
    expect(screen.queryByTestId("downgrade-begin")).toBeNull();
    expect(screen.getByTestId("downgrade-class")).toBeVisible();
  });

  it("keeps what was typed while the person logs in, except for the confirmation", async () => {
    const { unmount } = start("security", extent(), () => problem(403, "login-too-old"));
    await userEvent.click(await screen.findByTestId("downgrade-begin"));
    await userEvent.click(screen.getByTestId("downgrade-4h"));
    await userEvent.type(screen.getByTestId("downgrade-reason"), "redis is down");
    await userEvent.type(screen.getByTestId("downgrade-typed"), "everything");
    await userEvent.click(screen.getByTestId("downgrade-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const calls = start("security", extent());
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    expect(screen.getByTestId("downgrade-reason")).toHaveValue("redis is down");
    expect(screen.getByTestId("downgrade-typed")).toHaveValue("");
    const before = Date.now();
    await userEvent.type(screen.getByTestId("downgrade-typed"), "everything");
    await userEvent.click(screen.getByTestId("downgrade-confirm"));
    await waitFor(() => expect(screen.queryByTestId("downgrade-dialog")).toBeNull());
    const sent = calls.find(({ method }) => method === "POST")?.body as { until: string; reason: string };
    expect(sent.reason).toBe("redis is down");
    expect(Math.abs(Date.parse(sent.until) - before - 4 * 3_600_000)).toBeLessThan(60_000);
    expect(sessionStorage).toHaveLength(0);
  });

  it("that is refused stays open to be corrected", async () => {
    start("security", extent(), () => problem(409, "conflict", { detail: "Another downgrade or its end is under way: wait until it is done." }));
    await fill("everything");
    expect(await screen.findByText(/Another downgrade or its end is under way/)).toBeVisible();
    expect(screen.getByTestId("downgrade-dialog")).toBeVisible();
  });

  it("shows its progress and what failed", async () => {
    start("security", extent({ open: 29, active: [opened], run: { resume: false, startedAt: "2026-11-21T08:00:00Z", by: alice, total: 30, done: 29, failed: [{ resource: bobsCluster, message: { code: "host.unreachable", text: "The host cluster cannot be reached; try again in a moment." } }], failedTotal: 1 } }));
    const run = await screen.findByTestId("downgrade-run");
    expect(within(run).getByRole("progressbar")).toHaveAttribute("aria-valuetext", "29 of 30");
    expect(within(run).getByText(bobsCluster.title)).toBeVisible();
    expect(screen.getByText("29 of 30 open in every member")).toBeVisible();
  });

  it("is ended with a reason", async () => {
    const calls = start("security", extent({ open: 30, active: [opened] }));
    await userEvent.click(await screen.findByTestId("resume-all"));
    await userEvent.type(screen.getByTestId("resume-reason"), "it is back");
    await userEvent.click(screen.getByTestId("resume-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "DELETE")?.body).toEqual({ scope: "all", reason: "it is back" }));
  });

  it("names the scope that ends, and every other downgrade that the end concerns", async () => {
    const redis = { ...opened, scope: "class" as const, class: "redis", reason: "a slow shard" };
    const kafka = { ...opened, scope: "class" as const, class: "kafka", reason: "a full disk" };
    start("security", extent({ open: 30, active: [opened, redis, kafka] }));
    await userEvent.click(await screen.findByTestId("resume-all"));
    expect(await screen.findByTestId("resume-scope")).toHaveTextContent("Every downgrade ends, of all resources and of classes");
    expect(within(screen.getByTestId("resume-also")).getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([expect.stringContaining("a slow shard"), expect.stringContaining("a full disk")]);
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    await userEvent.click(screen.getByTestId("resume-redis"));
    expect(await screen.findByTestId("resume-scope")).toHaveTextContent("Every downgrade of redis ends");
    expect(within(screen.getByTestId("resume-also")).getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([expect.stringMatching(/only its resources of redis.*redis is down/)]);
  });

  it("ends without a list of others if there are none", async () => {
    start("security", extent({ open: 30, active: [opened] }));
    await userEvent.click(await screen.findByTestId("resume-all"));
    expect(await screen.findByTestId("resume-scope")).toBeVisible();
    expect(screen.queryByTestId("resume-also")).toBeNull();
  });

  it("is looked at by auditors, and hidden from others", async () => {
    start("auditor", extent({ canAct: false, active: [opened], open: 1 }));
    expect(await screen.findByTestId("look-only")).toBeVisible();
    expect(screen.queryByTestId("downgrade-begin")).toBeNull();
    expect(screen.queryByTestId("resume-all")).toBeNull();
  });

  it("asks nothing of the server for who may not see it", async () => {
    const calls = start("requester", extent());
    expect(await screen.findByTestId("not-yours")).toBeVisible();
    expect(calls.some(({ path }) => path === "/downgrade")).toBe(false);
  });
});
