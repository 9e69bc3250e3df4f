import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { problem, renderPage, serve } from "../testing/render";
import type { Answer } from "../testing/render";
import { userCodeOf } from "../lib/user-code";
import { DevicePage } from "./DevicePage";

const login = { client: "kubectl-acp on alices-laptop", address: "10.1.2.3", scopes: ["read", "tickets:write"], startedAt: "2026-11-20T10:00:00Z", expiresAt: "2026-11-20T10:10:00Z", tokenSeconds: 43_200 };

function start(at: string, look: () => Answer) {
  serve({ "GET /auth/device": look });
  renderPage(<DevicePage />, { path: "/device", at });
}

describe("the login of a command line", () => {
  it.each([
    ["bcdfghjk", "BCDF-GHJK"],
    [" BCDF-GHJK ", "BCDF-GHJK"],
    ["BCDF GHJ", ""],
    ["", ""],
  ])("reads the code %j as %j", (text, want) => {
    expect(userCodeOf(text)).toBe(want);
  });

  it("does nothing by a link alone", async () => {
    const calls = serve({ "GET /auth/device": () => ({ body: login }) });
    renderPage(<DevicePage />, { path: "/device", at: "/device?code=BCDF-GHJK" });
    expect(await screen.findByTestId("device-code")).toHaveValue("BCDF-GHJK");
    expect(calls).toEqual([]);
  });

  it.each([
    { button: "device-agree", deny: false, text: /is authorized/ },
    { button: "device-deny", deny: true, text: /was not authorized/ },
  ])("describes the login, and sends the decision: $button", async ({ button, deny, text }) => {
    const calls = serve({ "GET /auth/device": () => ({ body: login }), "POST /auth/device/approve": () => ({ status: 204, body: undefined }) });
    renderPage(<DevicePage />, { path: "/device", at: "/device" });
    await userEvent.type(await screen.findByTestId("device-code"), "bcdfghjk");
    await userEvent.click(screen.getByTestId("device-look"));
    const asked = await screen.findByTestId("device-asked");
    expect(asked).toHaveTextContent("kubectl-acp on alices-laptop");
    expect(asked).toHaveTextContent("10.1.2.3");
    expect(asked).toHaveTextContent("Request access, comment, withdraw");
    expect(asked).toHaveTextContent("12 hours");
    expect(calls.some((call) => call.method === "POST")).toBe(false);
    await userEvent.click(screen.getByTestId(button));
    expect(await screen.findByText(text)).toBeVisible();
    expect(calls.filter((call) => call.method === "POST").map((call) => call.body)).toEqual([{ userCode: "BCDF-GHJK", deny }]);
    expect(calls.filter((call) => call.method === "GET")).toHaveLength(1);
  });

  it.each([
    ["device-agree", "device-deny", false],
    ["device-deny", "device-agree", true],
  ])("sends one decision only: after %s, %s is disabled", async (button, other, deny) => {
    const calls = serve({ "GET /auth/device": () => ({ body: login }), "POST /auth/device/approve": () => ({ status: 204, body: undefined }) });
    const answer = globalThis.fetch;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    vi.stubGlobal("fetch", async (request: Request) => {
      if (request.method === "POST") await held;
      return answer(request);
    });
    renderPage(<DevicePage />, { path: "/device", at: "/device?code=BCDF-GHJK" });
    await userEvent.click(await screen.findByTestId("device-look"));
    await userEvent.click(await screen.findByTestId(button));
    expect(screen.getByTestId(other)).toBeDisabled();
    await userEvent.click(screen.getByTestId(other));
    release();
    expect(await screen.findByTestId("device-done")).toBeVisible();
    expect(calls.filter((call) => call.method === "POST").map((call) => call.body)).toEqual([{ userCode: "BCDF-GHJK", deny }]);
  });

  it("reports an unknown code, and accepts another one", async () => {
    let there = false;
    start("/device?code=BCDF-GHJK", () => (there ? { body: login } : problem(404, "not-found")));
    await userEvent.click(await screen.findByTestId("device-look"));
    expect(await screen.findByText(/No login is waiting for this code/)).toBeVisible();
    there = true;
    await userEvent.click(screen.getByTestId("device-look"));
    expect(await screen.findByTestId("device-asked")).toBeVisible();
  });

  it("requires eight letters", async () => {
    const calls = serve({});
    renderPage(<DevicePage />, { path: "/device", at: "/device" });
    await userEvent.type(await screen.findByTestId("device-code"), "abc");
    await userEvent.click(screen.getByTestId("device-look"));
    expect(await screen.findByText("Enter the eight letters.")).toBeVisible();
    await waitFor(() => expect(calls).toEqual([]));
  });
});
