import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Finding, Member, MemberDetail } from "../api/types";
import { bobsCluster, me } from "../testing/fixtures";
import { problem, renderPage, serve, verbatim } from "../testing/render";
import type { Answer } from "../testing/render";
import { FindingsPage } from "./FindingsPage";
import { FleetPage } from "./FleetPage";
import { MemberPage } from "./MemberPage";

const governor = { "GET /me": () => ({ body: me({ roles: ["security"] }) }) };
const m1: Member = {
  name: "m1",
  state: "Ready",
  guard: "Missing",
  engine: "direct",
  clusterProfile: "fleet/m1",
  kubernetesVersion: "v1.34.2",
  ciliumVersion: "1.19.0",
  stops: 0,
  fails: 0,
  warns: 1,
  behind: 0,
  identities: { used: 52_428, limit: 65_535, labels: [] },
  objects: { managed: 1_200, realized: 1_200, pending: 0, drifted: 0, leaked: 0, overridden: 0 },
};
const m2: Member = { name: "m2", state: "Quarantined", message: verbatim("ciliumclusterwidenetworkpolicies cannot be listed"), guard: "Unknown", stops: 1, fails: 0, warns: 0, behind: 7 };

function fleet(answer: () => Answer) {
  serve({ ...governor, "GET /fleet": answer });
  renderPage(<FleetPage />, { path: "/fleet", at: "/fleet" });
}

describe("the fleet", () => {
  it("shows each member's state, versions, headroom and what it lacks", async () => {
    fleet(() => ({ body: { items: [m1, m2], reported: true } }));
    const first = within(await screen.findByTestId("member-m1"));
    for (const text of ["ready", "Kubernetes v1.34.2", "Cilium 1.19.0", "Engine direct", "From ClusterProfile fleet/m1", "80% used", "1,200", "up to date", "missing", "1 warning"]) expect(first.getByText(text)).toBeVisible();
    expect(first.getByRole("meter", { name: "Identities" })).toHaveAttribute("aria-valuetext", "52,428 of 65,535");
    expect(first.getByRole("link", { name: "m1" })).toHaveAttribute("href", "/fleet/m1");
    const second = within(screen.getByTestId("member-m2"));
    for (const text of ["quarantined", m2.message?.text ?? "", "7 resources", "not read", "1 quarantines it"]) expect(second.getByText(text)).toBeVisible();
    expect(second.queryByText(/ClusterProfile/)).toBeNull();
  });

  it("shows how many nodes report, and names those that do not", async () => {
    const nodes = { total: 5, reporting: 2, unhealthy: 1, silent: 2, unhealthyNodes: ["n1"], silentNodes: ["n2"] };
    fleet(() => ({ body: { items: [{ ...m1, nodes }, m2, { ...m1, name: "m3", nodes: { ...nodes, reporting: 5, unhealthy: 0, silent: 0, unhealthyNodes: [], silentNodes: [] } }], reported: true } }));
    const first = within(await screen.findByTestId("member-m1"));
    for (const text of ["2 of 5 report", "agent not healthy: n1", "no recent report: n2 and 1 more"]) expect(first.getByText(text)).toBeVisible();
    expect(within(screen.getByTestId("member-m2")).getByText("no reports: accepted by the API server")).toBeVisible();
    const third = within(screen.getByTestId("member-m3"));
    expect(third.getByText("5 of 5 report")).toBeVisible();
    expect(third.queryByText(/no recent report|not healthy/)).toBeNull();
  });

  it("finds members by what their rows show, counts their states, and keeps both in the address", async () => {
    const user = userEvent.setup();
    fleet(() => ({ body: { items: [m1, m2, { ...m1, name: "m3", engine: "kubefed", ciliumVersion: "1.18.0" }], reported: true } }));
    await screen.findByTestId("member-m1");
    expect(screen.getByTestId("state-Ready")).toHaveTextContent("ready 2");
    await user.click(screen.getByTestId("state-Quarantined"));
    expect(screen.queryByTestId("member-m1")).toBeNull();
    expect(screen.getByTestId("member-m2")).toBeVisible();
    await user.click(screen.getByTestId("state-Quarantined"));
    await user.type(screen.getByLabelText("Search members"), "1.19");
    expect(await screen.findByTestId("member-m1")).toBeVisible();
    await waitFor(() => expect(screen.queryByTestId("member-m3")).toBeNull());
    await user.type(screen.getByLabelText("Search members"), " nothing");
    await user.click(await screen.findByTestId("clear-filters"));
    expect(await screen.findByTestId("member-m3")).toBeVisible();
  });

  it("shows where resources wait for their wave", async () => {
    fleet(() => ({ body: { items: [m1, { ...m1, name: "m3", waves: { waiting: 1_200, halted: 2 } }, { ...m1, name: "m4", waves: { waiting: 1, halted: 0 } }], reported: true } }));
    const waiting = within(await screen.findByTestId("member-m3"));
    for (const text of ["up to date", "1,200 wait for a wave", "2 halted"]) expect(waiting.getByText(text)).toBeVisible();
    expect(within(screen.getByTestId("member-m4")).getByText("1 waits for a wave")).toBeVisible();
    expect(screen.getAllByText(/halted/)).toHaveLength(1);
    expect(within(screen.getByTestId("member-m1")).queryByText(/wave/)).toBeNull();
  });

  it("says what is not known yet, and what to do without members", async () => {
    fleet(() => ({ body: { items: [m2], reported: false } }));
    expect(await screen.findByTestId("unreported")).toBeVisible();
  });

  it("is empty with the next step, and offers to try again", async () => {
    fleet(() => ({ body: { items: [], reported: false } }));
    expect(await screen.findByTestId("empty-state")).toHaveTextContent("kubectl acp cluster join");
  });

  it("offers to try again", async () => {
    fleet(() => problem(503, "unavailable"));
    expect(await screen.findByRole("button", { name: "Try again" })).toBeVisible();
  });
});

describe("a member", () => {
  it("has its findings, what is behind, and what consumes identities", async () => {
    const detail: MemberDetail = {
      member: { ...m1, identities: { used: 10, limit: 65_535, labels: [{ key: "com.trip/appid", values: 9 }] }, downgrade: { by: "dave", reason: "an outage" } },
      findings: [{ code: "GuardMissing", severity: "Warns", message: verbatim("there is no guard") }],
      units: [{ resource: bobsCluster, state: { cluster: "m1", state: "Drifted", desiredRevision: "aaaaaaaaaaaaaaa", observedRevision: "bbbbbbbbbbbbbbb", message: verbatim("changed by kubectl") } }],
      unitsTotal: 1,
    };
    serve({ ...governor, "GET /fleet/m1": () => ({ body: detail }) });
    renderPage(<MemberPage />, { path: "/fleet/:member", at: "/fleet/m1" });
    expect(await screen.findByTestId("member-findings")).toHaveTextContent("GuardMissing");
    expect(screen.getByTestId("member-units")).toHaveTextContent("wanted aaaaaaaaaa");
    expect(screen.getByTestId("member-units")).toHaveTextContent("observed bbbbbbbbbb");
    expect(screen.getByTestId("member-labels")).toHaveTextContent("com.trip/appid");
    expect(screen.getByTestId("member-downgrade")).toHaveTextContent("Switched to audit by dave: an outage “kubectl acp resume --context m1” ends it.");
  });
});

describe("findings", () => {
  const leak: Finding = { id: "1", kind: "leak", severity: "Fails", message: verbatim("remove it"), member: "m2", resource: bobsCluster };
  const refused: Finding = { id: "2", kind: "refused", severity: "Fails", message: verbatim("m1 cannot do this"), policy: "wide", sid: "everyone" };

  it("lead to what they are about, and are narrowed by their counts", async () => {
    const calls = serve({
      ...governor,
      "GET /fleet": () => ({ body: { items: [m1, m2], reported: true } }),
      "GET /findings": ({ search }) => ({ body: { items: search.has("kind") ? [refused] : [leak, refused], kinds: { leak: 1, refused: 1 }, total: 2, flowsAvailable: false } }),
    });
    renderPage(<FindingsPage />, { path: "/findings", at: "/findings" });
    const table = within(await screen.findByTestId("findings"));
    expect(table.getByRole("link", { name: bobsCluster.title })).toHaveAttribute("href", "/resources/bobs-cluster");
    expect(table.getByRole("link", { name: "m2" })).toHaveAttribute("href", "/fleet/m2");
    expect(table.getByRole("link", { name: "wide / everyone" })).toHaveAttribute("href", "/access-policies/wide");
    expect(table.getAllByText("not known")).toHaveLength(2);
    expect(screen.getByTestId("flows-unavailable")).toBeVisible();
    const kind = screen.getByTestId("kind-refused");
    await userEvent.click(kind);
    expect(kind).toHaveAttribute("aria-pressed", "true");
    expect(calls.some(({ path, search }) => path === "/findings" && search.getAll("kind").join() === "refused")).toBe(true);
  });

  it("say that there is nothing", async () => {
    serve({ ...governor, "GET /fleet": () => ({ body: { items: [], reported: true } }), "GET /findings": () => ({ body: { items: [], kinds: {}, total: 0, flowsAvailable: true } }) });
    renderPage(<FindingsPage />, { path: "/findings", at: "/findings" });
    expect(await screen.findByTestId("empty-state")).toHaveTextContent("There are no findings");
  });
});
