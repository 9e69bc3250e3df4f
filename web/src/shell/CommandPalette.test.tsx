import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { app888, bobsCluster, me } from "../testing/fixtures";
import { renderPage, serve } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { CommandPalette, CommandPaletteButton } from "./CommandPalette";

const hits = [
  { kind: "resource", ...bobsCluster },
  { kind: "ticket", id: "T-41", title: "Payments API to Bob’s cluster" },
  { kind: "application", ...app888 },
  { kind: "person", id: "bob", title: "Bob Li" },
  { kind: "group", id: "storage", title: "Storage" },
];

async function open(over: Record<string, (call: Call) => Answer> = {}) {
  const calls = serve({ "GET /search": () => ({ body: { items: hits } }), ...over });
  const rendered = renderPage(
    <>
      <CommandPaletteButton />
      <CommandPalette />
    </>,
    { path: "/", at: "/" },
  );
  await userEvent.click(await screen.findByTestId("palette-open"));
  return { calls, ...rendered, input: await screen.findByTestId("palette-input") };
}

describe("the palette", () => {
  it.each([
    ["ticket", "T-41", "/tickets/T-41"],
    ["application", "app-888", "/applications/app-888"],
    ["resource", "bobs-cluster", "/resources/bobs-cluster"],
    ["person", "bob", "/requests?view=all&requester=bob"],
    ["group", "storage", "/applications?scope=all&owner=storage"],
  ])("leads from a %s to where it is", async (kind, id, want) => {
    const { router, input } = await open();
    await userEvent.type(input, "b");
    await userEvent.click(await screen.findByTestId(`hit-${kind}-${id}`));
    await waitFor(() => expect(router.state.location.pathname + router.state.location.search).toBe(want));
  });

  it("asks once for what was typed, and not for nothing", async () => {
    const { calls, input } = await open();
    expect(calls).toEqual([]);
    await userEvent.type(input, "bob");
    await screen.findByTestId("hit-person-bob");
    await waitFor(() => expect(calls.map((call) => call.search.get("q")).at(-1)).toBe("bob"));
  });

  it("opens a ticket by its number, found or not", async () => {
    const { router, input } = await open({ "GET /search": () => ({ body: { items: [] } }) });
    await userEvent.type(input, "t-99");
    await userEvent.click(await screen.findByText("T-99"));
    await waitFor(() => expect(router.state.location.pathname).toBe("/tickets/T-99"));
  });

  it.each([
    ["nobody but security", ["requester"], 0],
    ["security", ["requester", "security"], 1],
  ] as const)("offers changes of classes to %s", async (_, roles, times) => {
    await open({ "GET /me": () => ({ body: me({ roles: [...roles] }) }) });
    await screen.findByText("Request access");
    expect(screen.queryAllByText("Change a class")).toHaveLength(times);
  });
});
