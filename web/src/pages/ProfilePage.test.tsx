import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import type { Preferences, Token } from "../api/types";
import { chooseLanguage } from "../i18n";
import { carol, me } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { ProfilePage } from "./ProfilePage";

const preferences: Preferences = { language: "en", timeZone: "UTC", digestHour: 9, available: ["inbox", "mail"], channels: { inbox: {}, mail: { comment: "at-once", decided: "off" } } };
const token = (over: Partial<Token> = {}): Token => ({ id: "t1", name: "pipeline", scopes: ["read"], createdAt: "2026-11-01T10:00:00Z", expiresAt: "2026-12-01T10:00:00Z", prefix: "acp_ab12", ...over });
const here = { current: true, createdAt: "2026-11-20T08:00:00Z", expiresAt: "2026-11-20T20:00:00Z", userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0" };
const there = { current: false, createdAt: "2026-11-19T08:00:00Z", expiresAt: "2026-11-20T19:00:00Z" };

interface Over {
  stored?: Preferences;
  put?: (call: Call) => Answer;
  make?: (call: Call) => Answer;
}

function start({ stored = preferences, put, make }: Over = {}) {
  const tokens = [token()];
  let sessions = [here, there];
  const calls = serve({
    "GET /me": () => ({ body: me({ leader: carol, roles: ["requester", "leader"], groups: ["payments"], timeZone: stored.timeZone, language: stored.language }) }),
    "GET /me/preferences": () => ({ body: stored }),
    "PUT /me/preferences": put ?? (({ body }) => ({ body })),
    "GET /me/tokens": () => ({ body: { items: tokens } }),
    "POST /me/tokens": make ?? (() => ({ status: 201, body: { token: token({ id: "t2" }), secret: "acp_very-secret" } })),
    "DELETE /me/tokens/t1": () => {
      tokens.pop();
      return { status: 204, body: undefined };
    },
    "GET /me/sessions": () => ({ body: { items: sessions } }),
    "DELETE /me/sessions": () => {
      sessions = [here];
      return { status: 204, body: undefined };
    },
  });
  return { calls, ...renderPage(<ProfilePage />, { path: "/profile", at: "/profile" }) };
}

afterEach(async () => chooseLanguage("en"));

describe("the profile", () => {
  it("says who one is, and as what", async () => {
    start();
    const identity = within(await screen.findByTestId("identity"));
    expect(identity.getByText("Alice Zhang")).toBeVisible();
    expect(identity.getByText("Carol Wu")).toBeVisible();
    expect(identity.getByText("payments")).toBeVisible();
    expect(identity.getByText("Leader", { selector: "span" })).toBeVisible();
  });

  it("keeps what was chosen, and all that was not touched", async () => {
    const { calls } = start();
    await userEvent.click(await screen.findByTestId("when-mail-comment"));
    await userEvent.click(await screen.findByRole("option", { name: "In the digest" }));
    await userEvent.click(screen.getByTestId("pref-save"));
    await waitFor(() => expect(calls.find((call) => call.method === "PUT")?.body).toEqual({ ...preferences, channels: { inbox: {}, mail: { comment: "digest", decided: "off" } } }));
  });

  it("speaks the chosen language at once", async () => {
    start();
    await userEvent.click(await screen.findByTestId("pref-language"));
    await userEvent.click(await screen.findByRole("option", { name: "中文" }));
    await userEvent.click(screen.getByTestId("pref-save"));
    expect(await screen.findByRole("heading", { name: "个人设置" })).toBeVisible();
  });

  it("does not offer channels that are not set up", async () => {
    start({ stored: { ...preferences, available: ["inbox"] } });
    expect(await screen.findByText(/No other channel is set up/)).toBeVisible();
    expect(screen.queryByTestId("notice-matrix")).toBeNull();
  });

  it("shows what the server refuses at its field", async () => {
    start({ put: () => problem(422, "invalid", { fields: [{ field: "timeZone", message: verbatim("Use a name such as Asia/Shanghai.") }] }) });
    await userEvent.click(await screen.findByTestId("pref-save"));
    expect(await screen.findByText("Use a name such as Asia/Shanghai.")).toBeVisible();
  });

  it("shows a new token's secret once, and keeps it nowhere", async () => {
    const { calls, cache } = start();
    await userEvent.click(await screen.findByTestId("new-token"));
    await userEvent.type(await screen.findByTestId("token-name"), "pipeline");
    await userEvent.click(screen.getByTestId("scope-ledger:read"));
    await userEvent.click(screen.getByTestId("token-make"));
    expect(await screen.findByTestId("token-secret")).toHaveTextContent("acp_very-secret");
    const sent = calls.find((call) => call.method === "POST");
    expect(sent?.body).toEqual({ name: "pipeline", scopes: ["read", "ledger:read"], expiresInSeconds: 30 * 86_400 });
    expect(sent?.headers.get("Idempotency-Key")).toMatch(/^[0-9a-f]{32}$/);
    await userEvent.keyboard("{Escape}");
    expect(screen.getByTestId("token-secret")).toBeInTheDocument();
    await userEvent.click(screen.getByTestId("token-done"));
    await waitFor(() => expect(screen.queryByTestId("token-secret")).toBeNull());
    await waitFor(() => expect(cache.getMutationCache().getAll()).toEqual([]));
  });

  it("makes no token without a name or a scope", async () => {
    const { calls } = start();
    await userEvent.click(await screen.findByTestId("new-token"));
    await userEvent.click(await screen.findByTestId("scope-read"));
    await userEvent.click(screen.getByTestId("token-make"));
    expect(await screen.findByText("Enter a name.")).toBeVisible();
    expect(screen.getByText("Choose at least one.")).toBeVisible();
    expect(calls.some((call) => call.method === "POST")).toBe(false);
  });

  it("revokes a token after asking", async () => {
    start();
    await userEvent.click(await screen.findByTestId("revoke-t1"));
    await userEvent.click(await screen.findByTestId("revoke-token-confirm"));
    expect(await screen.findByText(/You have no machine token/)).toBeVisible();
  });

  it("ends all other sessions, and offers it only while there are some", async () => {
    start();
    await userEvent.click(await screen.findByTestId("end-others"));
    await waitFor(() => expect(screen.queryByTestId("end-others")).toBeNull());
    expect(within(screen.getByTestId("sessions")).getByText("Firefox, Linux")).toBeVisible();
  });
});
