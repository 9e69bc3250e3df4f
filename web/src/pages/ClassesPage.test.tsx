import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { ClassInfo } from "../api/types";
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
