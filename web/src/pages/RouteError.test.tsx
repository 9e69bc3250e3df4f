import { act, screen } from "@testing-library/react";
import { useEffect, useState } from "react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveContext } from "../api/live-context";
import type { LiveState } from "../api/live-context";
import { lazyPage, reloadWasTried, rememberReload } from "../lib/page-load";
import { renderRoutes } from "../testing/render";
import { RouteError } from "./RouteError";

let portal: number | undefined;
let asked = 0;
const reload = vi.fn();
let setLive: (state: LiveState) => void = () => undefined;

beforeEach(() => {
  vi.useFakeTimers();
  portal = undefined;
  asked = 0;
  reload.mockReset();
  vi.stubGlobal("fetch", () => {
    asked++;
    return portal === undefined ? Promise.reject(new TypeError("Failed to fetch")) : Promise.resolve(new Response(null, { status: portal }));
  });
});
afterEach(() => vi.useRealTimers());

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

const noChunk = () => Promise.reject(new TypeError("Failed to fetch dynamically imported module"));

function Live({ children }: { children: ReactNode }) {
  const [live, set] = useState<LiveState>("lost");
  useEffect(() => {
    setLive = set;
  }, []);
  return <LiveContext value={live}>{children}</LiveContext>;
}

async function open(lazy = lazyPage(noChunk)) {
  renderRoutes([{ path: "/", lazy, errorElement: <RouteError reload={reload} />, hydrateFallbackElement: <></> }], "/", (children) => <Live>{children}</Live>);
  await pass(0);
}

describe("a page whose code does not come", () => {
  it("says that the portal cannot be reached, asks ever more seldom, and opens when it is back", async () => {
    await open();
    expect(screen.getByRole("heading", { name: "The portal cannot be reached" })).toBeVisible();
    expect(asked).toBe(1);
    await pass(1_000);
    expect(asked).toBe(2);
    await pass(1_000);
    expect(asked).toBe(2);
    await pass(1_000);
    expect(asked).toBe(3);
    expect(reload).not.toHaveBeenCalled();
    portal = 200;
    await pass(4_000);
    expect(reload).toHaveBeenCalledTimes(1);
    await pass(60_000);
    expect(asked).toBe(4);
  });

  it("does not take a proxy's error for the portal", async () => {
    portal = 502;
    await open();
    expect(reload).not.toHaveBeenCalled();
    expect(screen.getByTestId("portal-unreachable")).toBeVisible();
  });

  const hints = [
    { reason: "the live stream is back", hint: () => setLive("open") },
    { reason: "the browser is online", hint: () => window.dispatchEvent(new Event("online")) },
    { reason: "the person wants it", hint: () => screen.getByRole("button", { name: "Try now" }).click() },
  ];
  for (const { reason, hint } of hints) {
    it(`asks at once when ${reason}`, async () => {
      await open();
      await pass(60_000);
      portal = 200;
      act(hint);
      await pass(0);
      expect(reload).toHaveBeenCalledTimes(1);
    });
  }

  it("reloads once when the portal is there and the file is gone", async () => {
    portal = 200;
    await open();
    expect(reload).toHaveBeenCalledTimes(1);
    expect(reloadWasTried()).toBe(true);
  });

  it("does not reload again when that did not help", async () => {
    rememberReload();
    portal = 200;
    await open();
    expect(reload).not.toHaveBeenCalled();
    expect(screen.getByTestId("page-broken")).toHaveTextContent("This page has failed");
  });

  it("may reload once more after a page has loaded", async () => {
    rememberReload();
    await open(lazyPage(() => Promise.resolve(() => <p>here</p>)));
    expect(screen.getByText("here")).toBeVisible();
    expect(reloadWasTried()).toBe(false);
  });

  it("leaves the portal alone when a page breaks for another reason", async () => {
    vi.spyOn(console, "error").mockReturnValue(undefined);
    await open(lazyPage(() => Promise.resolve(() => { throw new Error("bug"); })));
    expect(screen.getByTestId("page-broken")).toBeVisible();
    expect(asked).toBe(0);
  });
});
