import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { AccessPackage, PackageHolder, Role } from "../api/types";
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

const holder: PackageHolder = { application: { id: app888.id, name: app888.name, title: app888.title }, version: 2, items: 1, tickets: ["T-7"], reason: "checkout reads carts" };

function answers(data = of(), roles: Role[] = ["requester", "application-owner"], holders = [holder], flows = true) {
  return serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /packages": ({ search }) => ({
      body: { items: search.get("q") === "none" ? [] : [{ name: "stores", title: "Payment stores", team, chain: "owners", version: 3, resources: 1, publishedAt: "2026-03-01T09:00:00Z", archived: false }] },
    }),
    "GET /packages/stores": () => ({ body: data }),
    "GET /packages/stores/holders": () => ({ body: { items: holders } }),
    "GET /packages/stores/holders/uses": () => ({ body: { items: [{ application: app888.name, state: "used", lastUsed: "2026-03-01T09:00:00Z" }], since: "2025-03-01T09:00:00Z", available: flows } }),
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

  it("show why a holder has its access, and when it last used it", async () => {
    answers();
    renderPage(<PackagePage />, { path: "/packages/:name", at: "/packages/stores" });
    await waitFor(() => expect(within(screen.getByTestId("holder-app-888")).getByTestId("last-use")).toHaveAttribute("data-value", "used"));
    expect(screen.getByTestId("holder-app-888").textContent).toContain("checkout reads carts");
  });

  it("say that the last use of a holder is not known if the flows cannot be read", async () => {
    answers(of(), undefined, [holder], false);
    renderPage(<PackagePage />, { path: "/packages/:name", at: "/packages/stores" });
    await waitFor(() => expect(within(screen.getByTestId("holder-app-888")).getByTestId("last-use")).toHaveAttribute("data-value", "unavailable"));
  });

  it("show per version how far it has come to existing holders, and what became of each", async () => {
    const version = (number: number) => ({ number, digest: "0a1b2c3d4e5f6071", publishedBy: { id: "bob", displayName: "Bob" }, publishedAt: "2026-03-01T09:00:00Z" });
    const name = { id: app888.id, name: app888.name, title: app888.title };
    const message = { code: "access-package.holder-not-approved", params: { ticket: "T-9" }, text: "Not everything in T-9 was approved." };
    answers(
      of({
        versions: [
          { ...version(3), holders: { state: "running", total: 3, done: 1, waiting: 1, skipped: 0, failed: 1, applications: [{ application: name, state: "failed", ticket: "T-9", message }] } },
          { ...version(2), holders: { state: "completed", total: 2, done: 2, waiting: 0, skipped: 0, failed: 0, applications: [] } },
          version(1),
        ],
      }),
    );
    renderPage(<PackagePage />, { path: "/packages/:name", at: "/packages/stores" });
    const row = await screen.findByTestId("version-3");
    expect(row.textContent).toContain("are being given the version · 3 applications · 1 done · 1 waits · 1 failed");
    expect(screen.getByTestId("version-2").textContent).toContain("were given the version · 2 applications · 2 done");
    expect(screen.getByTestId("version-1").textContent).toContain("keep what they have");
    const failed = screen.getByTestId("update-app-888").textContent;
    expect(failed).toContain("Failed");
    expect(failed).toContain("Not everything in T-9 was approved.");
  });

  it("are given to existing holders only if that is chosen, and only if there are any", async () => {
    const publishes = of({ can: { publish: true, request: true } });
    const calls = answers(publishes);
    renderPage(<NewRequestPage />, { path: "/requests/new", at: "/requests/new?kind=package&name=stores" });
    expect((await screen.findByTestId<HTMLInputElement>("package-reach-keep")).checked).toBe(true);
    const previews = () => calls.filter(({ path }) => path === "/tickets/preview").map(({ body }) => JSON.stringify(body));
    await waitFor(() => expect(previews()).toHaveLength(1));
    expect(previews()[0]).not.toContain("toHolders");
    await userEvent.click(screen.getByTestId("package-reach-give"));
    await waitFor(() => expect(previews().at(-1)).toContain('"toHolders":true'));
  });

  it("offer no choice about holders when there are none", async () => {
    answers(of({ can: { publish: true, request: true } }), undefined, []);
    renderPage(<NewRequestPage />, { path: "/requests/new", at: "/requests/new?kind=package&name=stores" });
    await screen.findByTestId("package-title");
    await waitFor(() => expect(screen.queryByTestId("package-reach-give")).toBeNull());
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
