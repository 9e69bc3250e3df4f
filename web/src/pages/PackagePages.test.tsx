import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { AccessPackage, Role } from "../api/types";
import { app888, application, me } from "../testing/fixtures";
import { renderPage, serve } from "../testing/render";
import { NewRequestPage } from "./NewRequestPage";
import { PackagePage } from "./PackagePage";
import { PackagesPage } from "./PackagesPage";

const team = { id: "storage", displayName: "Storage" };
const bobs = { id: "bobs-cluster", name: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", title: "Bob’s cluster" };
const of = (over: Partial<AccessPackage> = {}): AccessPackage => ({
  name: "stores", title: "Payment stores", team, chain: "publisher", version: 3, durationSeconds: 86_400, versions: [], can: { publish: false, request: true },
  resources: [{ resource: bobs, actions: ["redis:connect"], owners: [] }],
  ...over,
});

function answers(data = of(), roles: Role[] = ["requester", "application-owner"]) {
  return serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /packages": ({ search }) => ({
      body: { items: search.get("q") === "none" ? [] : [{ name: "stores", title: "Payment stores", team, chain: "owners", version: 3, resources: 1, publishedAt: "2026-03-01T09:00:00Z", archived: false }] },
    }),
    "GET /packages/stores": () => ({ body: data }),
    "GET /packages/stores/holders": () => ({ body: { items: [{ application: { id: app888.id, name: app888.name, title: app888.title }, version: 2, items: 1, tickets: ["T-7"] }] } }),
    "GET /applications": () => ({ body: { items: [application()] } }),
    "GET /applications/app-888": () => ({ body: application() }),
    "POST /packages/stores/archive": () => ({ status: 204, body: undefined }),
    "POST /tickets/preview": () => ({ body: { items: [] } }),
  });
}

describe("access packages", () => {
  it("are listed, and say when nothing matches", async () => {
    answers();
    renderPage(<PackagesPage />, { path: "/packages", at: "/packages" });
    expect((await screen.findByTestId("package-stores")).textContent).toContain("Storage");
    await userEvent.type(screen.getByTestId("packages-search"), "none");
    await screen.findByTestId("empty-state");
  });

  it("show who decides, and which applications hold an older version", async () => {
    answers();
    renderPage(<PackagePage />, { path: "/packages/:name", at: "/packages/stores" });
    expect((await screen.findByTestId("package-chain")).textContent).toContain("the team Storage");
    expect((await screen.findByTestId("holder-app-888")).textContent).toContain("2 (older)");
    expect(screen.queryByTestId("archive-package")).toBeNull();
  });

  it("are archived by their team after a confirmation", async () => {
    const calls = answers(of({ can: { publish: true, request: true } }));
    renderPage(<PackagePage />, { path: "/packages/:name", at: "/packages/stores" });
    await userEvent.click(await screen.findByTestId("archive-package"));
    expect(calls.some(({ method }) => method === "POST")).toBe(false);
    await userEvent.click(await screen.findByTestId("archive-confirm"));
    await waitFor(() => expect(calls.some(({ method, path }) => method === "POST" && path === "/packages/stores/archive")).toBe(true));
  });

  it("are requested in the version that was read", async () => {
    const calls = answers();
    renderPage(<NewRequestPage />, { path: "/requests/new", at: "/requests/new?package=stores" });
    await userEvent.click(await screen.findByTestId("package-application"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(app888.title) }));
    await waitFor(() =>
      expect(calls.find(({ path }) => path === "/tickets/preview")?.body).toMatchObject({ items: [{ application: "app-888" }], package: { name: "stores", version: 3 }, durationSeconds: 86_400 }),
    );
  });

  it("cannot be requested when they are archived", async () => {
    answers(of({ archivedAt: "2026-03-01T09:00:00Z", can: { publish: false, request: false } }));
    renderPage(<NewRequestPage />, { path: "/requests/new", at: "/requests/new?package=stores" });
    await screen.findByTestId("package-archived");
  });
});
