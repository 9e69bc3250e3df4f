import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Entity, Organization, Role } from "../api/types";
import { me } from "../testing/fixtures";
import { csvText } from "../lib/csv";
import { organizationsCSV } from "../lib/tables/policies";
import { renderPage, serve, verbatim } from "../testing/render";
import { OrganizationPage } from "./OrganizationPage";
import { OrganizationsPage } from "./OrganizationsPage";

const payments = (over: Partial<Organization> = {}): Organization => ({
  name: "payments",
  title: "Payments",
  accepted: true,
  mine: false,
  teams: [{ kind: "group", id: "team", displayName: "Core team" }],
  administrators: [{ kind: "person", id: "carol", displayName: "Carol Wu" }],
  classBounds: { patterns: ["trnv1:rsc:o:redis:clusters:*"], labelKeys: ["o/redis"], enforcers: ["cilium"], sensitivities: ["low"], actions: [], defaultModes: [], allowOtherPorts: false, requireWaves: true },
  classes: [{ name: "redis", accepted: false, message: verbatim("the label app is none of o/redis") }],
  policies: [],
  ...over,
});

function start(roles: Role[], organization: Organization, organizations: string[] = []) {
  serve({
    "GET /me": () => ({ body: me({ roles, organizations }) }),
    "GET /organizations": () => ({ body: { items: [organization] } }),
    "GET /organizations/payments": () => ({ body: organization }),
  });
}

describe("organizations", () => {
  it("are listed with what is outside of the bounds", async () => {
    start(["auditor"], payments({ accepted: false }));
    renderPage(<OrganizationsPage />, { path: "/organizations", at: "/organizations" });
    const card = await screen.findByTestId("organization-payments");
    for (const text of ["Payments", "Core team", "conflict", "1 object outside of the bounds"]) expect(card).toHaveTextContent(text);
    expect(screen.queryByTestId("new-organization")).toBeNull();
    expect(within(card).getByRole("link", { name: "Payments" })).toHaveAttribute("href", "/organizations/payments");
    expect(screen.getByTestId("csv")).toBeVisible();
  });

  it("are written to a file with their teams, administrators and objects", () => {
    const [, line] = csvText(organizationsCSV, [payments()]).split("\r\n");
    expect(line).toBe("payments,Payments,Core team (team),Carol Wu (carol),redis,,redis,yes,");
  });

  it.each([
    { who: "an administrator", roles: ["requester"] as Role[], mine: true, objects: true, itself: false },
    { who: "the security team", roles: ["security"] as Role[], mine: false, objects: true, itself: true },
    { who: "an auditor", roles: ["auditor"] as Role[], mine: false, objects: false, itself: false },
  ])("are changed by $who only as far as they may", async ({ roles, mine, objects, itself }) => {
    start(roles, payments({ mine }), mine ? ["payments"] : []);
    renderPage(<OrganizationPage />, { path: "/organizations/:id", at: "/organizations/payments" });
    const item = within(await screen.findByTestId("object-redis"));
    expect(item.getByText("the label app is none of o/redis")).toBeVisible();
    expect((await screen.findByText("o/redis")).tagName).toBe("CODE");
    expect(screen.queryByTestId("propose-redis") !== null).toBe(objects);
    expect(screen.queryByTestId("new-ResourceClass") !== null).toBe(objects);
    expect(screen.queryByTestId("propose-organization") !== null).toBe(itself);
    // Without bounds there may be no approval policies.
    expect(screen.queryByTestId("new-ApprovalPolicy")).toBeNull();
  });
});

describe("the catalog of an organization", () => {
  const row = (over: Partial<Entity>): Entity => ({ kind: "resource", id: "carts", title: "Carts", name: "trnv1:rsc:o:redis:clusters:carts", owners: ["group:team"], sensitivity: "low", source: "portal", version: 4, ...over });
  const rows = [row({}), row({ id: "vault", title: "Vault", outOfBounds: [verbatim("the sensitivity high is none of low")] }), row({ id: "old", title: "Old", source: "cmdb" })];

  function open(organization: Organization, roles: Role[], items: Entity[]) {
    const calls = serve({
      "GET /me": () => ({ body: me({ roles, organizations: ["payments"] }) }),
      "GET /organizations/payments": () => ({ body: organization }),
      "GET /catalog/entities": () => ({ body: { items } }),
      "POST /catalog/entities": ({ body }) => ({ body }),
    });
    renderPage(<OrganizationPage />, { path: "/organizations/:id", at: "/organizations/payments" });
    return calls;
  }
  const bounds = { patterns: ["trnv1:rsc:o:redis:clusters:*"], kinds: ["resource" as const], sensitivities: ["low" as const], environments: [] };

  it("is changed by an administrator within the bounds", async () => {
    const calls = open(payments({ mine: true, catalogBounds: bounds }), ["requester"], rows);
    await screen.findByTestId("edit-carts");
    expect(calls.find((call) => call.path === "/catalog/entities")?.search.get("organization")).toBe("payments");
    expect(["edit-vault", "edit-old", "remove-vault"].map((id) => screen.queryByTestId(id))).toEqual([null, null, null]);
    expect(screen.getByText("the sensitivity high is none of low")).toBeVisible();
    await userEvent.click(screen.getByTestId("new-entity"));
    await userEvent.type(await screen.findByTestId("entity-id"), "orders");
    await userEvent.type(screen.getByTestId("entity-title"), "Orders");
    await userEvent.type(screen.getByTestId("entity-name"), "trnv1:rsc:o:redis:clusters:orders");
    await userEvent.click(screen.getByTestId("entity-save"));
    await waitFor(() =>
      expect(calls.find((call) => call.method === "POST")?.body).toEqual({ kind: "resource", id: "orders", title: "Orders", name: "trnv1:rsc:o:redis:clusters:orders", owners: ["group:team"], sensitivity: "low" }),
    );
  });

  it("keeps the names of entities when an administrator edits them", async () => {
    open(payments({ mine: true, catalogBounds: bounds }), ["requester"], rows);
    await userEvent.click(await screen.findByTestId("edit-carts"));
    expect(await screen.findByTestId("entity-name")).toBeDisabled();
    expect(screen.getByTestId("entity-title")).toBeEnabled();
  });

  it("is only read without bounds, and by auditors", async () => {
    open(payments({ mine: true }), ["requester"], rows);
    await screen.findByTestId("entity-resource-carts");
    for (const id of ["edit-carts", "new-entity"]) expect(screen.queryByTestId(id)).toBeNull();
  });

  it("says that it is empty", async () => {
    open(payments({ mine: true, catalogBounds: bounds }), ["requester"], []);
    expect(await screen.findByTestId("no-entities")).toBeVisible();
  });
});
