import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Access } from "../api/types";
import { app888, bobsCluster, connection, resource } from "../testing/fixtures";
import { renderPage, serve } from "../testing/render";
import { ResourcePage } from "./ResourcePage";

const grant: Access = { effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], policy: "p", sid: "t-42-1", ticket: "T-42", ticketVisible: true, counting: true };

function start(access: Access[]) {
  serve({
    "GET /resources/bobs-cluster": () => ({ body: resource({ mine: true }) }),
    "GET /resources/bobs-cluster/access": () => ({ body: { items: access } }),
    "GET /resources/bobs-cluster/connections": () => ({ body: { items: [connection()], available: true, since: "2026-11-19T10:00:00Z", lastFlow: "2026-11-20T10:00:00Z" } }),
    "GET /tickets": () => ({ body: { items: [] } }),
  });
  renderPage(<ResourcePage />, { path: "/resources/:id", at: "/resources/bobs-cluster" });
}

describe("who tried", () => {
  it("says which ticket lets them in by now", async () => {
    start([grant]);
    expect(await screen.findByTestId("granted")).toHaveTextContent("Granted since by T-42");
  });

  it("says what refused them as long as nothing does", async () => {
    start([]);
    const row = within(await screen.findByTestId("connection-row"));
    expect(row.getByText("nothing allows it")).toBeVisible();
    expect(row.queryByTestId("request-access")).toBeNull();
  });
});
