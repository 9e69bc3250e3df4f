import { describe, expect, it } from "vitest";
import type { Ticket } from "../api/types";
import { bob, carol, cluster, event, step, ticket } from "../testing/fixtures";
import { timeline } from "./timeline";

const approvedSteps = [step("leader", "approved", [carol], { decidedBy: carol }), step("owner", "approved", [bob], { decidedBy: bob })];

const granted = [
  event("submitted", 0),
  event("step-approved", 1_000, { step: "leader", actor: carol, comment: "Fine." }),
  event("step-approved", 2_000, { step: "owner", actor: bob }),
  event("approved", 2_000),
  event("written", 2_010),
  event("compiled", 2_020, { revision: "r1" }),
  event("propagated", 2_030, { cluster: "m2" }),
  event("propagated", 2_031, { cluster: "m1" }),
  event("realized", 2_045, { cluster: "m1", revision: "r1" }),
  event("realized", 2_060, { cluster: "m2", revision: "r1" }),
  event("effective", 2_061),
];

/** `kind:status`, with the step's or the clusters' names. */
const outline = (of: Ticket) =>
  timeline(of).map((node) => {
    const names = node.step ? `(${node.step.name})` : node.clusters ? `(${node.clusters.map((line) => line.cluster).join(",")})` : "";
    return `${node.kind}${names}:${node.status}`;
  });

describe("timeline", () => {
  const cases: Record<string, { reason: string; ticket: Ticket; want: string[] }> = {
    pending: {
      reason: "steps that are still to come follow what happened, in their order, and then what the request is for",
      ticket: ticket({ steps: [step("leader", "approved", [carol]), step("owner", "current", [bob]), step("security", "waiting", [])], events: granted.slice(0, 2) }),
      want: ["submitted:done", "step(leader):done", "step(owner):current", "step(security):waiting", "clusters:waiting", "effective:waiting"],
    },
    rejected: {
      reason: "after a rejection nothing is to come",
      ticket: ticket({
        state: "rejected",
        steps: [step("leader", "rejected", [carol]), step("owner", "waiting", [bob])],
        events: [event("submitted", 0), event("step-rejected", 5, { step: "leader", actor: carol, comment: "No." })],
      }),
      want: ["submitted:done", "step(leader):bad"],
    },
    withdrawn: {
      reason: "after a withdrawal nothing is to come",
      ticket: ticket({ state: "withdrawn", events: [event("submitted", 0), event("withdrawn", 5)] }),
      want: ["submitted:done", "withdrawn:ended"],
    },
    applying: {
      reason: "a cluster without an event is shown with its live state, and the effect is still to come",
      ticket: ticket({ state: "applying", steps: approvedSteps, events: granted.slice(0, 6), clusters: [cluster("m2", "Unreachable"), cluster("m1", "Pending")] }),
      want: ["submitted:done", "step(leader):done", "step(owner):done", "approved:done", "written:done", "compiled:done", "clusters(m1,m2):current", "effective:waiting"],
    },
    effective: {
      reason: "clusters are one node, sorted by name",
      ticket: ticket({ state: "effective", steps: approvedSteps, events: granted, clusters: [cluster("m1", "Realized"), cluster("m2", "Realized")] }),
      want: ["submitted:done", "step(leader):done", "step(owner):done", "approved:done", "written:done", "compiled:done", "clusters(m1,m2):done", "effective:done"],
    },
    revoking: {
      reason: "the revocation has clusters of its own; the grant's stay as they were",
      ticket: ticket({
        state: "revoking",
        steps: approvedSteps,
        events: [...granted, event("revoke-requested", 9_000, { actor: bob }), event("revoke-written", 9_010), event("realized", 9_040, { cluster: "m1" })],
        clusters: [cluster("m1", "Realized"), cluster("m2", "Pending")],
      }),
      want: [
        "submitted:done", "step(leader):done", "step(owner):done", "approved:done", "written:done", "compiled:done", "clusters(m2,m1):done", "effective:done",
        "revoke-requested:ended", "revoke-written:done", "clusters(m1,m2):current", "revoked:waiting",
      ],
    },
    failed: {
      reason: "a failure says so, and promises no effect",
      ticket: ticket({ state: "failed", steps: approvedSteps, events: [...granted.slice(0, 4), event("failed", 2_500)] }),
      want: ["submitted:done", "step(leader):done", "step(owner):done", "approved:done", "failed:bad"],
    },
  };
  for (const [name, { reason, ticket: of, want }] of Object.entries(cases)) {
    it(`${name}: ${reason}`, () => expect(outline(of)).toEqual(want));
  }

  it("measures from the approval, and for a revocation from its request", () => {
    const nodes = timeline(
      ticket({ state: "revoked", steps: approvedSteps, events: [...granted, event("revoke-requested", 9_000), event("realized", 9_040, { cluster: "m1" }), event("revoked", 9_055)] }),
    );
    const after = Object.fromEntries(nodes.map((node) => [`${node.kind} ${node.phase}`, node.afterMs]));
    expect(after).toMatchObject({ "approved grant": undefined, "written grant": 10, "clusters grant": 60, "effective grant": 61, "clusters revoke": 40, "revoked revoke": 55 });
  });

  it("gives the live state to the clusters of the present phase only", () => {
    const nodes = timeline(
      ticket({ state: "revoking", events: [...granted, event("revoke-requested", 9_000), event("realized", 9_040, { cluster: "m1" })], clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable")] }),
    );
    const live = nodes.filter((node) => node.kind === "clusters").map((node) => node.clusters?.map((line) => line.live?.state));
    expect(live).toEqual([[undefined, undefined], ["Realized", "Unreachable"]]);
  });
});
