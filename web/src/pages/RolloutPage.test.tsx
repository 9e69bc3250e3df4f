import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { RolloutCard } from "../api/types";
import { card } from "../testing/fixtures";
import { problem, renderPage, serve, unanswered, verbatim } from "../testing/render";
import { RolloutPage } from "./RolloutPage";

const may = card().can;
const redis = card();
const cache = card({ resource: { id: "cache", name: "trnv1:rsc:x:redis:clusters:cache", title: "Cache" }, stage: "observe", mode: "Observe", score: 31, enough: false, missing: [verbatim("Watched on 5 of 14 days.")], hint: { code: "wait", message: verbatim("Wait.") } });
const foreign = card({ resource: { id: "foreign", name: "trnv1:rsc:x:redis:clusters:foreign", title: "Foreign" }, stage: "enforce", mode: "Enforce", can: { announce: false, advance: false, guard: false, toggle: false, override: false } });

function start(items: RolloutCard[], over: Parameters<typeof serve>[0] = {}, at = "/rollout") {
  const calls = serve({
    "GET /rollout": () => ({ body: { items, stages: { observe: 1, refine: 12 }, flowsAvailable: true, threshold: 70, windowSeconds: 1_209_600 } }),
    "GET /classes": () => ({ body: { items: [] } }),
    ...over,
  });
  return { calls, ...renderPage(<RolloutPage />, { path: "/rollout", at }) };
}

describe("the board", () => {
  it("has each resource in the column of its stage, with what it lacks", async () => {
    start([redis, cache, foreign]);
    const column = within(await screen.findByTestId("column-observe"));
    expect(column.getByTestId("card-cache")).toHaveTextContent("Watched on 5 of 14 days.");
    expect(screen.getByTestId("column-refine")).toHaveTextContent("12");
    expect(within(screen.getByTestId("column-announced")).getByText("None")).toBeVisible();
  });

  it("offers nothing to do with what is not the reader’s", async () => {
    start([redis, foreign]);
    await screen.findByTestId("select-bobs-cluster");
    expect(screen.queryByTestId("select-foreign")).toBeNull();
    expect(screen.queryByTestId("card-menu-foreign")).toBeNull();
  });

  it("reads the filters of the address", async () => {
    const { calls } = start([redis], {}, "/rollout?class=redis&stage=refine&stage=none");
    await screen.findByTestId("board");
    const search = calls.find(({ path }) => path === "/rollout")?.search;
    expect([search?.get("class"), search?.getAll("stage")]).toEqual(["redis", ["refine"]]);
    expect(screen.queryByTestId("column-observe")).toBeNull();
  });
});

describe("waves", () => {
  const waves = { wave: 2, waves: 3, name: "eu", waiting: 4, everywhere: false, startedAt: "2026-11-02T12:00:00Z", actions: ["resume", "rollback"] as const };
  const halt = { reason: "MemberUnhealthy", at: "2026-11-02T13:00:00Z", cluster: "m1", message: verbatim("m1 is Downgraded.") };

  it("shows the wave, why it is halted, and what the reader may do", async () => {
    const { calls } = start([card({ waves: { ...waves, actions: [...waves.actions], halt } })], {
      "PUT /rollout/bobs-cluster/waves": () => ({ body: { ...waves, actions: [] } }),
    });
    expect(await screen.findByTestId("waves")).toHaveTextContent("Wave 2 of 3 (eu) · 4 members wait");
    expect(screen.getByTestId("waves-halted")).toHaveTextContent("m1 is Downgraded.");
    expect(screen.queryByTestId("waves-skip")).toBeNull();
    await userEvent.click(screen.getByTestId("waves-rollback"));
    await userEvent.type(await screen.findByRole("textbox", { name: /reason/i }), "the canary fails");
    await userEvent.click(screen.getByTestId("waves-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/rollout/bobs-cluster/waves")?.body).toEqual({ action: "rollback", reason: "the canary fails" }));
  });

  it("keeps a rollback that needs a newer login", async () => {
    const shown = () => [card({ waves: { ...waves, actions: [...waves.actions] } })];
    const { unmount } = start(shown(), { "PUT /rollout/bobs-cluster/waves": () => problem(403, "login-too-old") });
    await userEvent.click(await screen.findByTestId("waves-rollback"));
    await userEvent.type(await screen.findByTestId("waves-reason"), "the canary fails");
    await userEvent.click(screen.getByTestId("waves-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start(shown(), { "PUT /rollout/bobs-cluster/waves": () => ({ body: { ...waves, actions: [] } }) });
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("waves-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/rollout/bobs-cluster/waves")?.body).toEqual({ action: "rollback", reason: "the canary fails" }));
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });

  it("is absent without a rollout in waves", async () => {
    start([card()]);
    await screen.findByTestId("card-bobs-cluster");
    expect(screen.queryByTestId("waves")).toBeNull();
  });
});

describe("the board of very many", () => {
  const many = (stage: RolloutCard["stage"], from: number, to: number) => Array.from({ length: to - from }, (_, i) => card({ resource: { id: `${stage}-${from + i}`, name: `${stage}-${from + i}`, title: `${stage} ${from + i}` }, stage, score: 90 }));
  const stages = { observe: 9_900, refine: 230 };

  it("reads each column separately, and more of a column on demand", async () => {
    const { calls } = start([], {
      "GET /rollout": ({ search }) => {
        const at = Number(search.get("cursor") ?? 0);
        if (search.get("stage") === "refine") return { body: { items: many("refine", at, Math.min(at + 100, 230)), stages, flowsAvailable: true, nextCursor: at + 100 < 230 ? String(at + 100) : "" } };
        return { body: { items: many("observe", at, at + 100), stages, flowsAvailable: true, nextCursor: String(at + 100) } };
      },
    });
    const column = within(await screen.findByTestId("column-refine"));
    await column.findByTestId("card-refine-0");
    expect(column.getAllByRole("listitem")).toHaveLength(8);
    expect(column.getByTestId("column-more-refine")).toHaveTextContent("222 more");
    expect(screen.getByTestId("column-more-observe")).toHaveTextContent("9,892 more");
    expect(within(screen.getByTestId("column-announced")).getByText("None")).toBeVisible();
    expect(calls.some(({ path, search }) => path === "/rollout" && search.get("stage") === "announced")).toBe(false);
    await userEvent.click(column.getByTestId("column-more-refine"));
    await userEvent.click(column.getByTestId("column-more-refine"));
    await waitFor(() => expect(column.getByTestId("column-more-refine")).toHaveTextContent("122 more"));
    expect(column.getByTestId("card-refine-107")).toBeVisible();
    expect(calls.some(({ search }) => search.get("stage") === "refine" && search.get("cursor") === "100")).toBe(true);
  });
});

describe("the guard", () => {
  it("keeps what was entered while a newer login is needed", async () => {
    const put = "PUT /rollout/bobs-cluster/guard";
    const { unmount } = start([redis], { [put]: () => problem(403, "login-too-old") });
    await userEvent.click(await screen.findByTestId("card-menu-bobs-cluster"));
    await userEvent.click(await screen.findByTestId("card-guard"));
    await userEvent.click(await screen.findByTestId("guard-reopens"));
    await userEvent.type(screen.getByTestId("guard-reason"), "open at night");
    await userEvent.click(screen.getByTestId("guard-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start([], { [put]: () => ({ body: redis.guard }), "GET /rollout/bobs-cluster": () => ({ body: redis }) });
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("guard-confirm"));
    await waitFor(() => expect(calls.find(({ method }) => method === "PUT")?.body).toEqual({ enabled: true, reopens: true, limit: 20, windowSeconds: 300, reason: "open at night" }));
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });
});

describe("several at once", () => {
  it("change their mode with one reason, in the members that were chosen, and each says what became of it", async () => {
    const { calls } = start([redis, cache], {
      "POST /rollout/advance": () => ({ body: { items: [{ resource: "bobs-cluster", ok: true, ticket: "T-5" }, { resource: "cache", ok: false, problem: { type: "about:blank", title: "not yet", status: 409, code: "evidence", message: verbatim("The score is 31.") } }] } }),
    });
    await userEvent.click(await screen.findByTestId("select-all"));
    await userEvent.click(screen.getByTestId("bulk-advance"));
    const dialog = within(await screen.findByTestId("advance-dialog"));
    expect(dialog.getByTestId("affected")).toHaveTextContent("Cache");
    await userEvent.click(dialog.getByTestId("advance-enforce"));
    expect(dialog.getByTestId("advance-lacking")).toHaveTextContent("Cache");
    await userEvent.click(dialog.getByTestId("advance-confirm"));
    expect(calls.some(({ method, path }) => method === "POST" && path === "/rollout/advance")).toBe(false);
    await userEvent.type(dialog.getByTestId("advance-reason"), "All known");
    await userEvent.click(dialog.getByTestId("advance-confirm"));
    expect(await screen.findByTestId("result-cache")).toHaveTextContent("The score is 31.");
    expect(within(screen.getByTestId("result-bobs-cluster")).getByRole("link", { name: "T-5" })).toHaveAttribute("href", "/tickets/T-5");
    const sent = calls.find(({ path }) => path === "/rollout/advance");
    expect(sent?.body).toEqual({ resources: ["cache", "bobs-cluster"], stage: "enforce", reason: "All known" });
    expect(sent?.headers.get("Idempotency-Key")).toMatch(/^\w{16,}$/);
  });

  it("are sent in parts of the size that the server accepts, and an incomplete preview is marked", async () => {
    const many = Array.from({ length: 120 }, (_, i) => card({ resource: { id: `r-${i}`, name: `r-${i}`, title: `R ${i}` } }));
    const none = { connections: 0, clients: 0 };
    let parts = 0;
    const { calls } = start(many, {
      "POST /tickets/impact": () => ({ body: { available: true, since: "2026-01-01T00:00:00Z", until: "2026-01-15T00:00:00Z", newlyAllowed: [], newlyDenied: [], allowed: none, denied: none, unchanged: 7, uncertain: [], truncated: false } }),
      "POST /rollout/advance": ({ body }) => {
        parts += 1;
        if (parts === 3) return { status: 503, body: { type: "about:blank", title: "away", status: 503, code: "unavailable", message: verbatim("Away for a moment.") } };
        return { body: { items: (body as { resources: string[] }).resources.map((resource) => ({ resource, ok: true, ticket: "T-5" })) } };
      },
    });
    await userEvent.click(await screen.findByTestId("select-all"));
    await userEvent.click(screen.getByTestId("bulk-advance"));
    const dialog = within(await screen.findByTestId("advance-dialog"));
    expect(await dialog.findByTestId("covered-mode")).toHaveTextContent("the first 50 of 120 resources");
    await userEvent.type(dialog.getByTestId("advance-reason"), "All known");
    await userEvent.click(dialog.getByTestId("advance-confirm"));
    await screen.findByTestId("rollout-results");
    const sent = calls.filter(({ path }) => path === "/rollout/advance");
    expect(sent.map(({ body }) => (body as { resources: string[] }).resources.length)).toEqual([50, 50, 20]);
    expect(new Set(sent.map(({ headers }) => headers.get("Idempotency-Key"))).size).toBe(3);
    const results = screen.getAllByTestId(/^result-/);
    expect(results).toHaveLength(120);
    expect(results.filter((each) => each.dataset["value"] === "refused")).toHaveLength(20);
    expect(results.at(-1)).toHaveTextContent("Away for a moment.");
  });

  it("are enforced without evidence only by who may, with a reason of its own", async () => {
    const { calls } = start([{ ...cache, can: { ...may, override: true } }], { "POST /rollout/advance": () => ({ body: { items: [] } }) });
    await userEvent.click(await screen.findByTestId("select-cache"));
    await userEvent.click(screen.getByTestId("bulk-advance"));
    const dialog = within(await screen.findByTestId("advance-dialog"));
    await userEvent.click(dialog.getByTestId("advance-enforce"));
    await userEvent.click(dialog.getByTestId("override-check"));
    await userEvent.type(dialog.getByTestId("advance-reason"), "Close it");
    await userEvent.click(dialog.getByTestId("advance-confirm"));
    expect(calls.some(({ path }) => path === "/rollout/advance")).toBe(false);
    await userEvent.type(dialog.getByTestId("override-reason"), "The audit is on Monday");
    await userEvent.click(dialog.getByTestId("advance-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/rollout/advance")?.body).toMatchObject({ override: { reason: "The audit is on Monday" } }));
  });

  it("need no reason for what was ticked for another mode", async () => {
    const { calls } = start([{ ...cache, can: { ...may, override: true } }], { "POST /rollout/advance": () => ({ body: { items: [] } }) });
    await userEvent.click(await screen.findByTestId("select-cache"));
    await userEvent.click(screen.getByTestId("bulk-advance"));
    const dialog = within(await screen.findByTestId("advance-dialog"));
    await userEvent.click(dialog.getByTestId("advance-enforce"));
    await userEvent.click(dialog.getByTestId("override-check"));
    await userEvent.click(dialog.getByTestId("advance-initial"));
    await userEvent.type(dialog.getByTestId("advance-reason"), "Look at it");
    await userEvent.click(dialog.getByTestId("advance-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/rollout/advance")?.body).toEqual({ resources: ["cache"], stage: "initial", reason: "Look at it" }));
  });

  describe("show the effect only of the mode that is chosen", () => {
    const lost = { available: true, since: "2026-01-01T00:00:00Z", until: "2026-01-15T00:00:00Z", newlyAllowed: [], newlyDenied: [], allowed: { connections: 0, clients: 0 }, denied: { connections: 0, clients: 0 }, unchanged: 7, uncertain: [], truncated: false };
    const modeIn = (body: unknown) => (body as { items: { mode: string }[] }).items[0]?.mode;
    const open = async (impact: (mode: string | undefined) => ReturnType<typeof unanswered> | ReturnType<typeof problem>) => {
      const planned = { body: { items: [{ position: 0, kind: "mode", steps: [{ name: "owner", required: 1, approvers: [] }] }] } };
      start([redis], {
        "POST /tickets/impact": ({ body }) => impact(modeIn(body)),
        "POST /tickets/preview": ({ body }) => (modeIn(body) === "Audit" ? planned : impact(modeIn(body))),
      });
      await userEvent.click(await screen.findByTestId("select-bobs-cluster"));
      await userEvent.click(screen.getByTestId("bulk-advance"));
      const dialog = within(await screen.findByTestId("advance-dialog"));
      await userEvent.click(dialog.getByTestId("advance-initial"));
      expect(await dialog.findByTestId("impact-short", {}, { timeout: 5_000 })).toHaveTextContent("Cuts off no client");
      expect(await dialog.findByTestId("planned-deciders")).toBeVisible();
      await userEvent.click(dialog.getByTestId("advance-enforce"));
      return dialog;
    };

    it("while the other is still being read", async () => {
      const dialog = await open((mode) => (mode === "Audit" ? { body: lost } : unanswered()));
      expect(dialog.queryByTestId("impact-short")).toBeNull();
      expect(within(dialog.getByTestId("replayed-mode")).getByTestId("skeleton")).toBeVisible();
      expect(dialog.queryByTestId("planned-deciders")).toBeNull();
    });

    it("and say that it is unknown if it cannot be read", async () => {
      const dialog = await open((mode) => (mode === "Audit" ? { body: lost } : problem(503, "unavailable")));
      expect(await dialog.findByTestId("impact-unknown", {}, { timeout: 5_000 })).toHaveTextContent("which connections this would cut off is not known");
      expect(within(dialog.getByTestId("impact-unknown")).getByRole("button", { name: "Try again" })).toBeVisible();
      expect(await dialog.findByTestId("deciders-unknown")).toBeVisible();
    });
  });

  it("are announced to the owners of the clients", async () => {
    const { calls } = start([redis], { "POST /rollout/announce": () => ({ body: { items: [{ resource: "bobs-cluster", ok: true, recipients: 3, unowned: ["app/ghost"] }] } }) });
    await userEvent.click(await screen.findByTestId("select-bobs-cluster"));
    await userEvent.click(screen.getByTestId("bulk-announce"));
    const dialog = within(await screen.findByTestId("announce-dialog"));
    await userEvent.type(dialog.getByTestId("announce-message"), "It closes on Monday");
    await userEvent.click(dialog.getByTestId("announce-confirm"));
    expect(await screen.findByTestId("result-bobs-cluster")).toHaveTextContent("3 people were notified");
    expect(calls.find(({ path }) => path === "/rollout/announce")?.body).toEqual({ resources: ["bobs-cluster"], message: "It closes on Monday" });
  });
});
