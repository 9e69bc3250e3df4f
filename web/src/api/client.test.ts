import { describe, expect, it, vi } from "vitest";
import { problem, serve, verbatim } from "../testing/render";
import { ApiError, client, onSignedOut, signOut, unwrap } from "./client";

const failure = async (call: Promise<unknown>): Promise<ApiError> => {
  const error: unknown = await call.then(() => undefined, (reason: unknown) => reason);
  if (!(error instanceof ApiError)) throw new Error(`not an ApiError: ${String(error)}`);
  return error;
};

describe("unwrap", () => {
  it("keeps the server’s code, its words and the id to report", async () => {
    serve({ "GET /me": () => problem(403, "forbidden", { detail: "Only owners may." }) });
    const error = await failure(unwrap(client.GET("/me")));
    expect([error.code, error.status, error.message, error.requestId]).toEqual(["forbidden", 403, "Only owners may.", "req-1"]);
  });

  it("calls no answer network", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
    expect((await failure(unwrap(client.GET("/me")))).code).toBe("network");
  });

  it("calls an answer that is no problem document internal", async () => {
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("<html>bad gateway</html>", { status: 502 })));
    const error = await failure(unwrap(client.GET("/me")));
    expect([error.code, error.status]).toEqual(["internal", 502]);
  });

  it("notifies the listeners of the end of the session", async () => {
    serve({ "GET /me": () => problem(401, "unauthenticated") });
    const listener = vi.fn();
    const stop = onSignedOut(listener);
    await failure(unwrap(client.GET("/me")));
    stop();
    await failure(unwrap(client.GET("/me")));
    expect(listener).toHaveBeenCalledTimes(1);
  });
});

describe("fieldMessage", () => {
  const fields = [
    { field: "items[0].actions[1]", message: verbatim("no such action") },
    { field: "durationSeconds", message: verbatim("too long") },
  ];
  const error = new ApiError("invalid", 400, "", { type: "about:blank", title: "", status: 400, code: "invalid", message: verbatim("no"), fields });
  const cases = [
    { reason: "an element is its list’s", name: "actions", want: "no such action" },
    { reason: "a field of the body itself", name: "durationSeconds", want: "too long" },
    { reason: "a container is not its fields", name: "items", want: undefined },
    { reason: "another field", name: "reason", want: undefined },
  ];
  for (const { reason, name, want } of cases) it(reason, () => expect(error.fieldMessage(name)?.text).toBe(want));
});

describe("signOut", () => {
  const cases = [
    { reason: "the provider’s logout, if it has one", answer: new Response('{"redirect":"https://id.example/logout"}'), want: "https://id.example/logout" },
    { reason: "our login page otherwise", answer: new Response("{}"), want: "/login?error=signed-out" },
    { reason: "our login page also when the session was over already", answer: new Response("", { status: 401 }), want: "/login?error=signed-out" },
  ];
  const drafts = ["acp-request-draft", "acp-decision-comment", "acp-dialog-draft", "acp.traffic-draft"];
  const keepDrafts = () => drafts.forEach((key) => sessionStorage.setItem(key, "{}"));
  const keptDrafts = () => drafts.filter((key) => sessionStorage.getItem(key) !== null);
  for (const { reason, answer, want } of cases) {
    it(reason, async () => {
      keepDrafts();
      const fetched = vi.fn(() => Promise.resolve(answer));
      vi.stubGlobal("fetch", fetched);
      expect(await signOut()).toBe(want);
      expect(fetched).toHaveBeenCalledWith("/auth/logout", { method: "POST", headers: { Accept: "application/json", "X-ACP-Request": "1" } });
      expect(keptDrafts()).toEqual([]);
    });
  }

  it.each([
    ["the server failed", () => Promise.resolve(new Response("<html>bad gateway</html>", { status: 502 })), "internal"],
    ["there were too many requests", () => Promise.resolve(new Response(JSON.stringify(problem(429, "rate-limited").body), { status: 429 })), "rate-limited"],
    ["the network failed", () => Promise.reject(new TypeError("Failed to fetch")), "network"],
  ])("fails and keeps the drafts when %s, because the session may still exist", async (_, answer, code) => {
    keepDrafts();
    vi.stubGlobal("fetch", answer);
    expect((await failure(signOut())).code).toBe(code);
    expect(keptDrafts()).toEqual(drafts);
  });
});
