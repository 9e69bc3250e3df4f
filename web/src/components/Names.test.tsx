import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { bob, carol } from "../testing/fixtures";
import { problem, renderPage, serve } from "../testing/render";
import { PersonName } from "./Names";

const show = () => renderPage(<PersonName person={bob} />, { path: "/", at: "/" });

describe("a person", () => {
  it("is a name until it is asked who that is", async () => {
    const calls = serve({ "GET /people/bob": () => ({ body: { person: { ...bob, title: "Storage lead", email: "bob@trip.example" }, leader: carol, groups: [{ kind: "group", id: "storage", displayName: "Storage" }], owns: [] } }) });
    show();
    expect(calls).toEqual([]);
    await userEvent.click(screen.getByTestId("person-bob"));
    const card = within(await screen.findByTestId("person-card"));
    expect(await card.findByText("Storage lead")).toBeVisible();
    expect(card.getByText("Carol Wu")).toBeVisible();
    expect(card.getByText("Storage")).toBeVisible();
    expect(card.getByRole("link", { name: "Requests of this person" })).toHaveAttribute("href", "/requests?view=all&requester=bob");
    await userEvent.keyboard("{Escape}");
    expect(screen.queryByTestId("person-card")).toBeNull();
  });

  it("shows the id if there is no other name", async () => {
    serve({ "GET /people/bob": () => problem(404, "not-found") });
    show();
    await userEvent.click(screen.getByTestId("person-bob"));
    const card = within(await screen.findByTestId("person-card"));
    expect(card.getByText("Bob Li")).toBeVisible();
    expect(await card.findByTestId("error-state")).toBeVisible();
  });
});
