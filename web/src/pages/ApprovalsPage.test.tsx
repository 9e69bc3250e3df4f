import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { ticket } from "../testing/fixtures";
import { renderPage, serve } from "../testing/render";
import { ApprovalsPage } from "./ApprovalsPage";

const can = { approve: true, reject: true, withdraw: false, revoke: false };
const waiting = ["T-1", "T-2", "T-3"].map((id) => ticket({ id, can }));

function start(at: string, items = waiting) {
  serve({ "GET /tickets": () => ({ body: { items } }), ...Object.fromEntries(waiting.map((each) => [`GET /tickets/${each.id}`, () => ({ body: each })])) });
  return renderPage(<ApprovalsPage />, { path: "/approvals", at });
}

describe("approvals", () => {
  it("opens the first one", async () => {
    start("/approvals");
    expect(await screen.findByTestId("ticket-T-1")).toBeVisible();
    expect(screen.getByTestId("approval-T-1")).toHaveAttribute("aria-current", "true");
  });

  it("walks with j and k, and stops at the ends", async () => {
    const { router } = start("/approvals");
    await screen.findByTestId("ticket-T-1");
    const press = async (keys: string, want: string) => {
      await userEvent.keyboard(keys);
      await waitFor(() => expect(router.state.location.search).toBe(`?ticket=${want}`));
      await screen.findByTestId(`ticket-${want}`);
    };
    await press("j", "T-2");
    await press("j", "T-3");
    await press("j", "T-3");
    await press("k", "T-2");
    await press("k", "T-1");
    await press("k", "T-1");
  });

  it("brings a to Approve and r to the comment, and decides nothing by itself", async () => {
    start("/approvals?ticket=T-2");
    await screen.findByTestId("approve-button");
    await userEvent.keyboard("a");
    expect(screen.getByTestId("approve-button")).toHaveFocus();
    await userEvent.keyboard("r");
    expect(screen.getByTestId("decision-comment")).toHaveFocus();
  });

  it("leaves the letters alone while someone types", async () => {
    const { router } = start("/approvals?ticket=T-2");
    await userEvent.type(await screen.findByTestId("decision-comment"), "just ok");
    expect(screen.getByTestId("decision-comment")).toHaveValue("just ok");
    expect(router.state.location.search).toBe("?ticket=T-2");
  });

  it("says so when nothing waits", async () => {
    start("/approvals", []);
    expect(await screen.findByTestId("approvals-empty")).toHaveTextContent("Nothing waits for your decision.");
  });
});
