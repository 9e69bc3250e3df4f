import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { ApprovalPolicy, ClassInfo, Role, TicketPreview } from "../api/types";
import { alice, application, app888, bob, bobsCluster, carol, me, resource, step } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import { ClassesPage } from "./ClassesPage";
import { PoliciesPage } from "./PoliciesPage";
import { WhatIfPage } from "./WhatIfPage";

const policy = (over: Partial<ApprovalPolicy> = {}): ApprovalPolicy => ({
  name: "production",
  priority: 10,
  builtin: false,
  accepted: true,
  match: 'resource.environment == "production"',
  maxDurationSeconds: 7 * 86_400,
  steps: [
    { name: "owner", approvers: ["resource.owner"], quorum: "any" },
    { name: "second pair of eyes", approvers: ["group:security"], quorum: "2", condition: "permanent", timeout: verbatim("after 72h escalate to group:security") },
  ],
  breakGlassPeople: [bob],
  ...over,
});
const builtin = policy({ name: "(built-in)", builtin: true, match: undefined, maxDurationSeconds: undefined, breakGlassPeople: undefined, steps: [{ name: "leader", approvers: ["requester.leader"], quorum: "any" }] });

function start(roles: Role[], items = [policy(), builtin]) {
  const calls = serve({
    "GET /me": () => ({ body: me({ roles }) }),
    "GET /approval-policies": () => ({ body: { items } }),
    "GET /approval-policies/production": () => ({ body: policy({ yaml: "priority: 10\n" }) }),
  });
  renderPage(<PoliciesPage />, { path: "/policies", at: "/policies" });
  return calls;
}

describe("approval policies", () => {
  it("are shown as they are tried, with words for what they say", async () => {
    start(["security"]);
    const first = await screen.findByTestId("policy-production");
    for (const text of ["the resource’s owner", "2 of group security", "At most 7 days", "Bob Li", 'resource.environment == "production"']) expect(first).toHaveTextContent(text);
    expect(screen.getByTestId("policy-(built-in)")).toHaveTextContent("the leader");
    expect([...screen.getByTestId("policies").children].map((each) => each.getAttribute("data-testid"))).toEqual(["policy-production", "policy-(built-in)"]);
  });

  it("tell a reminder that is the same in every step once, and others at their steps", async () => {
    const steps = (...seconds: (number | undefined)[]) => seconds.map((remindSeconds, index) => ({ name: `step ${index}`, approvers: ["resource.owner"], quorum: "any", ...(remindSeconds === undefined ? {} : { remindSeconds }) }));
    start(["security"], [policy({ name: "same", steps: steps(86_400, 86_400) }), policy({ name: "other", steps: steps(86_400, 172_800) }), policy({ name: "some", steps: steps(86_400, undefined) })]);
    const text = "The approvers are reminded after";
    const same = await screen.findByTestId("policy-same");
    expect(within(same).getAllByText(text, { exact: false })).toEqual([within(same).getByTestId("reminder-of-all")]);
    expect(within(screen.getByTestId("policy-other")).getAllByText(text, { exact: false })).toHaveLength(2);
    expect(within(screen.getByTestId("policy-some")).getAllByText(text, { exact: false })).toHaveLength(1);
    expect(screen.getAllByTestId("reminder-of-all")).toHaveLength(1);
  });

  it("have their YAML, which is read only when it is opened", async () => {
    const calls = start(["auditor"]);
    const first = within(await screen.findByTestId("policy-production"));
    expect(calls.some((call) => call.path === "/approval-policies/production")).toBe(false);
    await userEvent.click(first.getByText("YAML"));
    expect(await first.findByText("priority: 10")).toBeVisible();
    expect(within(screen.getByTestId("policy-(built-in)")).queryByText("YAML")).toBeNull();
  });

  it.each([
    { role: "security" as const, want: "/requests/new?kind=approval-policy&object=ApprovalPolicy&name=production" },
    { role: "auditor" as const, want: null },
    { role: "requester" as const, want: null },
  ])("are changed by a request: $role", async ({ role, want }) => {
    start([role]);
    await screen.findByTestId("policy-production");
    await waitFor(() => expect(screen.queryByTestId("propose-production")?.getAttribute("href") ?? null).toBe(want));
  });

  it("do not hide that one is not accepted", async () => {
    start(["requester"], [policy({ accepted: false, message: verbatim("steps[0].condition: undeclared reference") })]);
    expect(await screen.findByTestId("not-accepted")).toBeVisible();
    expect(screen.getByText("steps[0].condition: undeclared reference")).toBeVisible();
  });

  it("offer to try again", async () => {
    serve({ "GET /approval-policies": () => problem(503, "unavailable") });
    renderPage(<PoliciesPage />, { path: "/policies", at: "/policies" });
    expect(await screen.findByRole("button", { name: "Try again" })).toBeVisible();
  });
});

describe("classes", () => {
  it("show what they cover and lead to a change", async () => {
    const redis: ClassInfo = { kind: "ResourceClass", name: "redis", pattern: "trnv1:rsc:*:redis:*", labelKey: "redis.io/name", members: 12, accepted: true, yaml: "pattern: x\n" };
    serve({ "GET /me": () => ({ body: me({ roles: ["security"] }) }), "GET /classes": () => ({ body: { items: [redis] } }) });
    renderPage(<ClassesPage />, { path: "/classes", at: "/classes" });
    const row = await screen.findByTestId("class-redis");
    expect(row).toHaveTextContent("12");
    await waitFor(() => expect(screen.getByTestId("propose-redis")).toHaveAttribute("href", "/requests/new?kind=class&object=ResourceClass&name=redis"));
    expect(screen.getByText(/There is no subject class yet/)).toBeVisible();
  });
});

describe("what if", () => {
  const answer: TicketPreview = { items: [{ position: 0, steps: [step("leader", "waiting", [carol])], approvalPolicy: "production" }] };

  function ask(roles: Role[]) {
    const calls = serve({
      "GET /me": () => ({ body: me({ roles }) }),
      "GET /people": () => ({ body: { items: [alice, bob] } }),
      "GET /people/bob": () => ({ body: { person: bob, groups: [], owns: [] } }),
      "GET /applications": () => ({ body: { items: [application()] } }),
      "GET /applications/app-888": () => ({ body: application() }),
      "GET /applications/app-888/connections": () => ({ body: { items: [], available: true, since: "2026-11-20T10:00:00Z" } }),
      "GET /resources": () => ({ body: { items: [resource()] } }),
      "GET /resources/bobs-cluster": () => ({ body: resource() }),
      "POST /tickets/what-if": () => ({ body: answer }),
    });
    renderPage(<WhatIfPage />, { path: "/policies/what-if", at: "/policies/what-if" });
    return calls;
  }

  it("asks as another person, and names who would decide", async () => {
    const calls = ask(["security"]);
    await userEvent.click(await screen.findByTestId("what-if-as"));
    await userEvent.click(await screen.findByRole("option", { name: /Bob Li/ }));
    await userEvent.click(screen.getByTestId("select-application"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(app888.title) }));
    await userEvent.click(screen.getByTestId("select-resource"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(bobsCluster.title) }));
    expect(await screen.findByTestId("preview-step-leader")).toHaveTextContent("Carol Wu");
    const sent = calls.filter((call) => call.method === "POST");
    expect(sent.at(-1)?.body).toEqual({
      as: "bob",
      request: { items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }], durationSeconds: 30 * 86_400, reason: "preview" },
    });
    expect(sent.every((call) => call.path === "/tickets/what-if")).toBe(true);
  });

  it("asks about a change of mode", async () => {
    const calls = ask(["security"]);
    await userEvent.click(await screen.findByRole("radio", { name: "Change of mode" }));
    await userEvent.click(screen.getByTestId("what-if-resource"));
    await userEvent.click(await screen.findByRole("option", { name: new RegExp(bobsCluster.title) }));
    await screen.findByTestId("preview-step-leader");
    expect(calls.filter((call) => call.method === "POST").at(-1)?.body).toEqual({ request: { kind: "mode", items: [{ resource: "bobs-cluster", mode: "Enforce" }], reason: "preview" } });
  });

  it("lets others ask only as themselves, about their own", async () => {
    const calls = ask(["requester"]);
    await screen.findByTestId("select-application");
    expect(screen.queryByTestId("what-if-as")).toBeNull();
    await waitFor(() => expect(calls.find((call) => call.path === "/applications")?.search.get("mine")).toBe("true"));
  });
});
