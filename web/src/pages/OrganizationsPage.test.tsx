import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Organization, Role } from "../api/types";
import { me } from "../testing/fixtures";
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
