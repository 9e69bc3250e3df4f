import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { keys } from "../api/keys";
import type { ClassInfo, Me } from "../api/types";
import { me } from "../testing/fixtures";
import { renderPage, serve, verbatim } from "../testing/render";
import { ClassesPage } from "./ClassesPage";

const redis: ClassInfo = { kind: "ResourceClass", name: "redis", pattern: "trnv1:rsc:x:redis:clusters:*", labelKey: "com.trip/redis", yaml: "", members: 3, accepted: true };
const waves = { wave: 1, waves: 2, name: "canary", waiting: 4, everywhere: false, startedAt: "2026-11-02T12:00:00Z", enforcedSince: "2026-11-02T12:01:00Z", actions: ["pause" as const, "rollback" as const] };

function start(info: ClassInfo) {
  const calls = serve({
    "GET /classes": () => ({ body: { items: [info] } }),
    "PUT /classes/redis/waves": () => ({ body: { ...waves, actions: [] } }),
  });
  renderPage(<ClassesPage />, { path: "/classes", at: "/classes" });
  return calls;
}

describe("a change of a class", () => {
  const subject: ClassInfo = { ...redis, kind: "SubjectClass", name: "pods" };
  const ours: ClassInfo = { ...redis, name: "ours", organization: "shop" };
  const theirs: ClassInfo = { ...redis, name: "theirs", organization: "travel" };
  const buttons = ["new-ResourceClass", "new-SubjectClass", "propose-redis", "propose-ours", "propose-theirs", "propose-pods"];

  const cases: { reason: string; who: Partial<Me>; want: string[] }[] = [
    { reason: "is offered to the security team", who: { roles: ["security"] }, want: buttons },
    { reason: "is not offered to auditors", who: { roles: ["security", "auditor"] }, want: [] },
    { reason: "is not offered to others, whom the server refuses", who: { roles: ["requester", "resource-owner"] }, want: [] },
    { reason: "is offered to administrators of an organization for its resource classes", who: { roles: ["requester"], organizations: ["shop"] }, want: ["new-ResourceClass", "propose-ours"] },
  ];
  it.each(cases)("$reason", async ({ who, want }) => {
    const calls = serve({ "GET /me": () => ({ body: me(who) }), "GET /classes": () => ({ body: { items: [redis, ours, theirs, subject] } }) });
    const { cache } = renderPage(<ClassesPage />, { path: "/classes", at: "/classes" });
    await screen.findByTestId("class-theirs");
    await waitFor(() => expect(cache.getQueryData(keys.me)).toBeDefined());
    await waitFor(() => expect(buttons.filter((id) => screen.queryByTestId(id))).toEqual(want));
    expect(calls.every((call) => call.method === "GET")).toBe(true);
  });
});

describe("the waves of a change of a class", () => {
  it("are shown in the place of the message, and rolled back with a reason", async () => {
    const calls = start({ ...redis, message: verbatim("wave 1 of 2 has begun"), waves });
    expect(await screen.findByTestId("waves")).toHaveTextContent("Wave 1 of 2 (canary) · 4 members wait · all have the new rules since");
    expect(screen.queryByText("wave 1 of 2 has begun")).toBeNull();
    expect(screen.queryByTestId("waves-skip")).toBeNull();
    await userEvent.click(screen.getByTestId("waves-rollback"));
    expect(await screen.findByText(/return to the rules from before the change/)).toBeVisible();
    await userEvent.type(screen.getByRole("textbox", { name: /reason/i }), "clients are cut off");
    await userEvent.click(screen.getByTestId("waves-confirm"));
    await waitFor(() => expect(calls.find(({ path }) => path === "/classes/redis/waves")?.body).toEqual({ action: "rollback", reason: "clients are cut off" }));
  });

  it("are absent without a rollout", async () => {
    start(redis);
    await screen.findByTestId("class-redis");
    expect(screen.queryByTestId("waves")).toBeNull();
  });
});
