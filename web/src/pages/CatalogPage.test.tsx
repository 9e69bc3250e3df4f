import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { CatalogSource, Entity, Role, SyncPreview } from "../api/types";
import { bodyOf } from "../lib/entity";
import { me } from "../testing/fixtures";
import { problem, renderRoutes, serve, verbatim } from "../testing/render";
import type { Answer, Call } from "../testing/render";
import { CatalogPage } from "./CatalogPage";
import { EntitiesPage } from "./EntitiesPage";

const preview: SyncPreview = {
  token: "p1",
  added: 1,
  changed: 1,
  gone: 1,
  unchanged: 40,
  problems: [verbatim("people.csv:3: no id")],
  changes: [
    { verb: "gone", kind: "person", id: "frank", title: "Frank", consequences: [verbatim("It is an owner of 3 entities.")] },
    { verb: "change", kind: "resource", id: "cart", title: "Cart", fields: [{ field: "sensitivity", before: "low", after: "high" }] },
    { verb: "add", kind: "group", id: "new", title: "New" },
  ],
};
const sources: CatalogSource[] = [
  { id: "company", kind: "files", location: "/etc/catalog", entities: 42, gone: 2, lastSync: "2026-11-20T10:00:00Z" },
  { id: "portal", kind: "portal", entities: 3 },
  { id: "scim", kind: "scim", entities: 5 },
  { id: "held", kind: "backstage", entities: 9, waiting: preview },
];
const entity = (over: Partial<Entity> = {}): Entity => ({ kind: "application", id: "app-9", title: "Nine", name: "trnv1:rsc:a:iam:sa:app/9", owners: ["user:bob"], source: "portal", version: 4, ...over });

function start(at: string, { roles = ["security"], ...handlers }: { roles?: Role[] } & Record<string, ((call: Call) => Answer) | Role[]> = {}) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles: roles }) }),
    "GET /catalog/sources": () => ({ body: { items: sources } }),
    "GET /catalog/entities": () => ({ body: { items: [entity(), entity({ id: "app-1", title: "One", source: "company" }), entity({ id: "app-2", title: "Two", source: "company", gone: true, consequences: [verbatim("It has 2 grants in force.")] })] } }),
    "POST /catalog/entities": ({ body }) => ({ body }),
    "POST /catalog/sources/company/preview": () => ({ body: preview }),
    "POST /catalog/sources/mine/preview": () => ({ body: preview }),
    "POST /catalog/sources/company/apply": () => ({ body: { added: 1, changed: 1, gone: 1 } }),
    "DELETE /catalog/entities/application/app-9": () => ({ status: 204, body: undefined }),
    "GET /people": () => ({ body: { items: [] } }),
    ...(handlers as Record<string, (call: Call) => Answer>),
  });
  const shown = renderRoutes([{ path: "/catalog", element: <CatalogPage /> }, { path: "/catalog/entities", element: <EntitiesPage /> }, { path: "*", element: <p>elsewhere</p> }], at);
  return { calls, ...shown };
}

describe("catalog sources", () => {
  it("show what they have, with links to the rows behind the numbers", async () => {
    start("/catalog");
    const row = await screen.findByTestId("source-company");
    expect([...row.querySelectorAll("a")].map((each) => each.getAttribute("href"))).toEqual(["/catalog/entities?source=company", "/catalog/entities?source=company&gone=yes"]);
  });

  it("say nothing about a sync where entities are changed one at a time", async () => {
    start("/catalog");
    for (const id of ["portal", "scim"]) expect(await screen.findByTestId(`source-${id}`)).not.toHaveTextContent("not yet");
    expect(screen.getByTestId("source-held")).toHaveTextContent("not yet");
    expect(screen.queryByTestId("check-scim")).toBeNull();
  });

  it("are synced only after the preview was looked at, with a reason", async () => {
    const { calls } = start("/catalog");
    await userEvent.click(await screen.findByTestId("check-company"));
    expect(await screen.findByTestId("sync-sums")).toHaveTextContent("1 new1 changed1 removed40 unchanged");
    expect(screen.getByTestId("change-frank")).toHaveTextContent("It is an owner of 3 entities.");
    expect(screen.getByTestId("change-cart")).toHaveTextContent("sensitivity: low to high");
    expect(screen.getByTestId("sync-problems")).toHaveTextContent("people.csv:3: no id");
    await userEvent.click(screen.getByTestId("remove-gone"));
    await userEvent.click(screen.getByTestId("apply-sync"));
    await userEvent.type(await screen.findByTestId("apply-reason"), "Frank left.");
    await userEvent.click(screen.getByTestId("apply-confirm"));
    await waitFor(() => expect(calls.find((call) => call.path.endsWith("/apply"))?.body).toEqual({ token: "p1", removeGone: true, reason: "Frank left." }));
    await waitFor(() => expect(screen.queryByTestId("sync-review")).toBeNull());
  });

  it("keep the preview when the catalog changed meanwhile", async () => {
    start("/catalog", { "POST /catalog/sources/company/apply": () => problem(409, "stale") });
    await userEvent.click(await screen.findByTestId("check-company"));
    await userEvent.click(await screen.findByTestId("apply-sync"));
    await userEvent.type(await screen.findByTestId("apply-reason"), "x");
    await userEvent.click(screen.getByTestId("apply-confirm"));
    expect(await screen.findByText(/It changed since you opened it/)).toBeInTheDocument();
  });

  it("keep the reason of a sync that needs a newer login, and show the new preview before it is applied", async () => {
    const { unmount } = start("/catalog", { "POST /catalog/sources/company/apply": () => problem(403, "login-too-old") });
    await userEvent.click(await screen.findByTestId("check-company"));
    await userEvent.click(await screen.findByTestId("apply-sync"));
    await userEvent.type(await screen.findByTestId("apply-reason"), "Frank left.");
    await userEvent.click(screen.getByTestId("apply-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start("/catalog");
    await userEvent.click(await screen.findByTestId("check-company"));
    expect(await screen.findByTestId("sync-review")).toBeVisible();
    expect(screen.queryByTestId("apply-reason")).toBeNull();
    await userEvent.click(screen.getByTestId("apply-sync"));
    expect(await screen.findByTestId("apply-reason")).toHaveValue("Frank left.");
    await userEvent.click(screen.getByTestId("apply-confirm"));
    await waitFor(() => expect(calls.find((call) => call.path.endsWith("/apply"))?.body).toMatchObject({ reason: "Frank left." }));
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });

  it("offer the sync that waits for a review", async () => {
    start("/catalog");
    expect(await screen.findByTestId("waiting-held")).toBeVisible();
    await userEvent.click(screen.getByTestId("review-held"));
    expect(await screen.findByTestId("sync-review")).toBeVisible();
  });

  it("take an upload as a source of its own", async () => {
    const { calls } = start("/catalog");
    await userEvent.click(await screen.findByTestId("upload-entities"));
    await userEvent.type(await screen.findByTestId("upload-source"), "mine");
    await userEvent.click(screen.getByTestId("catalog-content"));
    await userEvent.paste("id,title\napp-1,One\n");
    await userEvent.click(screen.getByTestId("upload-preview"));
    expect(await screen.findByTestId("sync-review")).toBeVisible();
    expect(calls.find((call) => call.path === "/catalog/sources/mine/preview")?.body).toEqual({ format: "csv", kind: "application", content: "id,title\napp-1,One\n" });
  });

  it("let an auditor look and change nothing", async () => {
    start("/catalog", { roles: ["auditor"] });
    await screen.findByTestId("source-company");
    expect(["upload-entities", "check-company", "review-held"].map((id) => screen.queryByTestId(id))).toEqual([null, null, null]);
  });

  it("are nothing for others", async () => {
    const { calls } = start("/catalog", { roles: ["requester"] });
    expect(await screen.findByTestId("not-yours")).toBeVisible();
    expect(calls.map((call) => call.path)).toEqual(["/me"]);
  });
});

describe("catalog entities", () => {
  it("read the filters of the address", async () => {
    const { calls } = start("/catalog/entities?q=nine&kind=application&source=company&gone=yes");
    await screen.findByTestId("entity-application-app-9");
    const search = calls.find((call) => call.path === "/catalog/entities")?.search;
    expect(["q", "kind", "source", "gone"].map((key) => search?.get(key))).toEqual(["nine", "application", "company", "true"]);
  });

  it("are changed only where they are kept, and deleted when they are gone", async () => {
    start("/catalog/entities");
    await screen.findByTestId("edit-app-9");
    expect(["remove-app-9", "edit-app-1", "remove-app-1", "edit-app-2", "remove-app-2"].map((id) => screen.queryByTestId(id) !== null)).toEqual([true, false, false, false, true]);
    expect(screen.getByTestId("entity-application-app-2")).toHaveTextContent("It has 2 grants in force.");
  });

  it("have owners with their names, and their ids on hover", async () => {
    const owners = { owners: ["group:storage", "user:bob"], ownerRefs: [{ kind: "group" as const, id: "storage", displayName: "Storage team" }, { kind: "person" as const, id: "bob", displayName: "Bob Li" }] };
    start("/catalog/entities", { "GET /catalog/entities": () => ({ body: { items: [entity(owners)] } }) });
    const row = within(await screen.findByTestId("entity-application-app-9"));
    expect(row.getByTitle("group:storage, user:bob")).toHaveTextContent("Storage team, Bob Li");
  });

  it("are changed from the version that was read", async () => {
    const { calls } = start("/catalog/entities");
    await userEvent.click(await screen.findByTestId("edit-app-9"));
    const title = await screen.findByTestId("entity-title");
    await userEvent.clear(title);
    await userEvent.type(title, "Number nine");
    await userEvent.click(screen.getByTestId("entity-save"));
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toEqual({ kind: "application", id: "app-9", title: "Number nine", name: "trnv1:rsc:a:iam:sa:app/9", owners: ["user:bob"], version: 4 }));
  });

  it("are new with what is needed, and show what the server refuses at its field", async () => {
    start("/catalog/entities", { "POST /catalog/entities": () => problem(422, "invalid", { fields: [{ field: "name", message: verbatim("is another entity's") }] }) });
    await userEvent.click(await screen.findByTestId("new-entity"));
    await userEvent.click(await screen.findByTestId("entity-save"));
    for (const text of ["Enter an id.", "Enter a title.", "Enter the resource name.", "Name at least one owner."]) expect(await screen.findByText(text)).toBeVisible();
    await userEvent.type(screen.getByTestId("entity-id"), "app-3");
    await userEvent.type(screen.getByTestId("entity-title"), "Three");
    await userEvent.type(screen.getByTestId("entity-name"), "trnv1:x");
    await userEvent.type(screen.getByTestId("entity-owners"), "user:bob{Enter}");
    await userEvent.click(screen.getByTestId("entity-save"));
    expect(await screen.findByText("is another entity's")).toBeVisible();
  });

  it("are removed with a reason", async () => {
    const { calls } = start("/catalog/entities");
    await userEvent.click(await screen.findByTestId("remove-app-9"));
    await userEvent.type(await screen.findByTestId("remove-entity-reason"), "Switched off.");
    await userEvent.click(screen.getByTestId("remove-entity-confirm"));
    await waitFor(() => expect(calls.find((call) => call.method === "DELETE")?.body).toEqual({ reason: "Switched off." }));
  });

  const newer = () => problem(403, "login-too-old");
  const refused = { "POST /catalog/entities": newer, "DELETE /catalog/entities/application/app-9": newer };

  it("keep what was changed while a newer login is needed, with the version that was read", async () => {
    const { unmount } = start("/catalog/entities", refused);
    await userEvent.click(await screen.findByTestId("edit-app-9"));
    await userEvent.type(await screen.findByTestId("entity-title"), " more");
    await userEvent.click(screen.getByTestId("entity-save"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start("/catalog/entities", { "GET /catalog/entities": () => ({ body: { items: [entity({ version: 5 })] } }) });
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("entity-save"));
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toMatchObject({ id: "app-9", title: "Nine more", version: 4 }));
    await waitFor(() => expect(sessionStorage).toHaveLength(0));
  });

  it("keep a new one while a newer login is needed", async () => {
    const { unmount } = start("/catalog/entities", refused);
    await userEvent.click(await screen.findByTestId("new-entity"));
    await userEvent.type(await screen.findByTestId("entity-id"), "app-3");
    await userEvent.type(screen.getByTestId("entity-title"), "Three");
    await userEvent.type(screen.getByTestId("entity-name"), "trnv1:x");
    await userEvent.type(screen.getByTestId("entity-owners"), "user:bob{Enter}");
    await userEvent.click(screen.getByTestId("entity-save"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start("/catalog/entities");
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("entity-save"));
    await waitFor(() => expect(calls.find((call) => call.method === "POST")?.body).toEqual({ kind: "application", id: "app-3", title: "Three", name: "trnv1:x", owners: ["user:bob"] }));
  });

  it("keep the reason of a removal while a newer login is needed", async () => {
    const { unmount } = start("/catalog/entities", refused);
    await userEvent.click(await screen.findByTestId("remove-app-9"));
    await userEvent.type(await screen.findByTestId("remove-entity-reason"), "Switched off.");
    await userEvent.click(screen.getByTestId("remove-entity-confirm"));
    expect(await screen.findByTestId("login-again")).toBeVisible();
    unmount();
    const { calls } = start("/catalog/entities");
    expect(await screen.findByTestId("dialog-restored")).toBeVisible();
    await userEvent.click(screen.getByTestId("remove-entity-confirm"));
    await waitFor(() => expect(calls.find((call) => call.method === "DELETE")?.body).toEqual({ reason: "Switched off." }));
  });

  it.each([
    { reason: "a person", form: entity({ kind: "person", id: "zoe", email: " z@x ", leader: "bob" }), want: { kind: "person", id: "zoe", title: "Nine", email: "z@x", leader: "bob", version: 4 } },
    { reason: "a group", form: entity({ kind: "group", members: ["bob"], parent: "" }), want: { kind: "group", id: "app-9", title: "Nine", members: ["bob"], version: 4 } },
    { reason: "a resource", form: entity({ kind: "resource" }), want: { kind: "resource", id: "app-9", title: "Nine", name: "trnv1:rsc:a:iam:sa:app/9", owners: ["user:bob"], sensitivity: "medium", version: 4 } },
  ])("send only what $reason has", ({ form, want }) => {
    expect(bodyOf(form)).toEqual(want);
  });
});
