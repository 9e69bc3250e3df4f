import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { LedgerLine, LedgerVerification, Role } from "../api/types";
import { chooseLanguage } from "../i18n";
import { ledgerFilterOf } from "../lib/ledger-filter";
import { bob, me } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { LedgerPage } from "./LedgerPage";

const line = (over: Partial<LedgerLine> = {}): LedgerLine => ({
  seq: 12,
  at: "2026-11-20T10:00:00Z",
  actor: bob,
  action: "ticket.approved",
  object: "T-42",
  details: { step: "owner" },
  prev: "a".repeat(64),
  hash: "b".repeat(64),
  ...over,
});

const verified: LedgerVerification = { intact: true, lines: 12, head: "b".repeat(64), anchors: [{ anchor: "git", seq: 10, at: "2026-11-20T09:00:00Z", matches: true }] };

interface Over {
  at?: string;
  roles?: Role[];
  list?: (call: Call) => Answer;
  verify?: () => Answer;
}

function start({ at = "/ledger", roles = ["auditor"], list, verify }: Over = {}) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /ledger": list ?? (() => ({ body: { items: [line()] } })),
    "POST /ledger/verify": verify ?? (() => ({ body: verified })),
    "GET /people": () => ({ body: { items: [bob] } }),
    "GET /people/bob": () => ({ body: { person: bob, groups: [], owns: [] } }),
  });
  return { calls, ...renderPage(<LedgerPage />, { path: "/ledger", at }) };
}

afterEach(() => chooseLanguage("en"));

describe("the ledger", () => {
  it("is read in the order of the address", async () => {
    const { calls } = start({ at: "/ledger?sort=seq", list: () => ({ body: { items: [line({ seq: 1 }), line({ seq: 2 })], nextCursor: "c2" } }) });
    await screen.findByTestId("ledger-1");
    expect(calls.find((call) => call.path === "/ledger")?.search.get("sort")).toBe("seq");
    const sorted = screen.getAllByRole("columnheader").filter((header) => header.hasAttribute("aria-sort"));
    expect(sorted.map((header) => [header.textContent, header.getAttribute("aria-sort")])).toEqual([["Line", "ascending"]]);
  });

  it("shows lines, and all of one when it is opened", async () => {
    start();
    await userEvent.click(await screen.findByTestId("line-12"));
    const whole = await screen.findByTestId("ledger-line");
    for (const text of ["ticket.approved", "owner", "a".repeat(64), "b".repeat(64)]) expect(whole).toHaveTextContent(text);
    expect(within(whole).getByRole("link", { name: "T-42" })).toHaveAttribute("href", "/tickets/T-42");
  });

  it.each<["en" | "zh", string[]]>([
    ["en", ["The request was withdrawn.", "comment", "The access review has ended already.", "state", "withdrawn"]],
    ["zh", ["申请已撤回。", "说明", "该访问复核已经结束。", "状态", "已撤回"]],
  ])("says in the reader’s language what was recorded, beside what the hash covers: %s", async (language, texts) => {
    await chooseLanguage(language);
    const details = { application: "orders", comment: "The access review has ended already.", commentCode: "review.closed", state: "withdrawn" };
    start({
      list: () => ({
        body: {
          items: [
            line({
              action: "ticket.withdrawn",
              details,
              message: { code: "ledger.action.ticket.withdrawn", text: "The request was withdrawn." },
              labels: { comment: { code: "ledger.detail.comment", text: "comment" }, state: { code: "ledger.detail.state", text: "state" } },
              texts: { comment: [{ code: "review.closed", text: "The access review has ended already." }], state: [{ code: "ledger.value.state-withdrawn", text: "withdrawn" }] },
            }),
          ],
        },
      }),
    });
    expect(await screen.findByTestId("ledger-12")).toHaveTextContent(texts[0] ?? "");
    await userEvent.click(screen.getByTestId("line-12"));
    const whole = await screen.findByTestId("ledger-line");
    for (const text of [...texts, "ticket.withdrawn", "commentCode", ...Object.values(details)]) expect(whole).toHaveTextContent(text);
  });

  it("reads the filters of the address, in the person's time zone", () => {
    const search = new URLSearchParams("actor=bob&action=ticket.approved&object=T-42&from=2026-11-20T08:00&to=soon");
    expect(ledgerFilterOf(search, "Asia/Shanghai")).toEqual({ actor: "bob", action: "ticket.approved", object: "T-42", from: "2026-11-20T00:00:00.000Z" });
  });

  it("has a label above each filter", async () => {
    start();
    await screen.findByTestId("ledger-from");
    const filters = within(screen.getByRole("search"));
    for (const label of ["Who", "What", "About", "From", "Until"]) expect(filters.getByText(label)).toBeVisible();
  });

  it("puts filters into the address and pages by cursor", async () => {
    const { calls, router } = start({ list: ({ search }) => ({ body: search.get("cursor") ? { items: [line({ seq: 1 })] } : { items: [line()], nextCursor: "c2" } }) });
    await userEvent.click(await screen.findByTestId("load-more"));
    expect(await screen.findByTestId("ledger-1")).toBeVisible();
    await userEvent.type(screen.getByTestId("ledger-object"), "T-42");
    await waitFor(() => expect(router.state.location.search).toBe("?object=T-42"));
    await waitFor(() => expect(calls.at(-1)?.search.get("object")).toBe("T-42"));
  });

  it("offers to clear filters that match nothing", async () => {
    const { router } = start({ at: "/ledger?object=T-9", list: () => ({ body: { items: [] } }) });
    await userEvent.click(await screen.findByRole("button", { name: "Clear filters" }));
    await waitFor(() => expect(router.state.location.search).toBe(""));
  });

  it("is verified only when it is asked for", async () => {
    const { calls } = start();
    await screen.findByTestId("ledger-12");
    expect(calls.some((call) => call.path === "/ledger/verify")).toBe(false);
    await userEvent.click(screen.getByTestId("verify-ledger"));
    expect(await screen.findByTestId("verification")).toHaveAttribute("data-value", "intact");
    expect(screen.getByText("12 lines, each as they were written.")).toBeVisible();
    expect(within(screen.getByTestId("anchors")).getByText("agrees")).toBeVisible();
  });

  it.each([
    { reason: "a broken line", body: { ...verified, intact: false, brokenAt: 7, reason: { code: "ledger.line-missing", params: { next: 8 }, text: "it is missing: line 8 follows" } }, want: ["Broken", "First wrong line: 7", "it is missing: line 8 follows"] },
    { reason: "an anchor that cannot be read", body: { ...verified, intact: false, reason: "An anchor cannot be read, so that not everything could be compared." }, want: ["Not everything could be checked", "An anchor cannot be read"] },
    { reason: "no anchor", body: { ...verified, anchors: [] }, want: ["Intact", "No anchor has a copy"] },
  ])("says what came out: $reason", async ({ body, want }) => {
    start({ verify: () => ({ body }) });
    await userEvent.click(await screen.findByTestId("verify-ledger"));
    const result = await screen.findByTestId("verification");
    for (const text of want) expect(result).toHaveTextContent(text);
  });

  it("is exported by the browser", async () => {
    start();
    expect(await screen.findByTestId("export-ledger")).toHaveAttribute("href", "/api/v1/ledger/export");
  });

  it("asks the server nothing for others, and says whom to ask", async () => {
    const { calls } = start({ roles: ["requester", "leader"] });
    expect(await screen.findByTestId("not-yours")).toBeVisible();
    expect(calls.map((call) => call.path)).toEqual(["/me"]);
  });

  it("offers to try again", async () => {
    start({ list: () => problem(503, "store-unavailable") });
    expect(await screen.findByRole("button", { name: "Try again" })).toBeVisible();
  });
});
