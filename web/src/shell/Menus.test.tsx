import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { me } from "../testing/fixtures";
import { renderPage } from "../testing/render";
import { AccountMenu } from "./Menus";

it("reports that signing out failed, and stays on the page", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("", { status: 503 })));
  const { router } = renderPage(<AccountMenu me={me()} />, { path: "/", at: "/" });
  await userEvent.click(screen.getByTestId("user-menu"));
  await userEvent.click(await screen.findByTestId("sign-out"));
  expect(await screen.findByTestId("toast")).toHaveTextContent("Signing out failed, and you may still be signed in. Try again.");
  expect(screen.getByTestId("toast")).toHaveAttribute("data-outcome", "failed");
  expect(router.state.location.pathname).toBe("/");
});
