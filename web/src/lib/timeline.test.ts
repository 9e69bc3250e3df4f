import { describe, expect, it } from "vitest";
import type { Ticket } from "../api/types";
import { alice, approved, bob, carol, cluster, event, item, step, ticket, ticketOf } from "../testing/fixtures";
import { timeline } from "./timeline";

const approvedSteps = [approved("leader", carol), approved("owner", bob)];

const granted = [
  event("submitted", 0),
  event("step-approved", 1_000, { step: "leader", actor: carol, comment: "Fine." }),
  event("step-approved", 2_000, { step: "owner", actor: bob }),
  event("approved", 2_000),
  event("written", 2_010),
  event("compiled", 2_020, { revision: "r1" }),
  event("realized", 2_045, { cluster: "m1", revision: "r1" }),
  event("realized", 2_060, { cluster: "m2", revision: "r1" }),
  event("effective", 2_061),
];

/** `kind:status`, with the step's or the clusters' names. */
const lineOf = (of: Ticket, position = 0) => {
  const about = of.items.find((each) => each.position === position);
  if (!about) throw new Error("no such item");
  return timeline(of, about);
};

const outline = (of: Ticket, position = 0) =>
  lineOf(of, position).map((node) => {
    const names = node.step ? `(${node.step.name})` : node.clusters ? `(${node.clusters.map((line) => line.cluster).join(",")})` : "";
    return `${node.kind}${names}:${node.status}`;
  });

describe("timeline", () => {
  const cases: Record<string, { reason: string; ticket: Ticket; want: string[] }> = {
    pending: {
      reason: "steps that are still to come follow what happened, in their order, and then what the request is for",
      ticket: ticketOf("pending", { steps: [approved("leader", carol), step("owner", "current", [bob]), step("security", "waiting", [])] }, { events: granted.slice(0, 2) }),
      want: ["submitted:done", "step(leader):done", "step(owner):current", "step(security):waiting", "clusters:waiting", "effective:waiting"],
    },
    rejected: {
      reason: "after a rejection nothing is to come",
      ticket: ticketOf(
        "rejected",
        { steps: [step("leader", "rejected", [carol]), step("owner", "waiting", [bob])] },
        { events: [event("submitted", 0), event("step-rejected", 5, { step: "leader", actor: carol, comment: "No." })] },
      ),
      want: ["submitted:done", "step(leader):bad"],
    },
    undecided: {
      reason: "reminders do not end the wait, also if nobody can decide",
      ticket: ticketOf("pending", { steps: [step("owner", "current", [bob])] }, { events: [event("submitted", 0), event("reminded", 5, { step: "owner" }), event("last-reminder", 6, { step: "owner" }), event("schedule-missing", 7, { step: "owner" })] }),
      want: ["submitted:done", "reminded:note", "last-reminder:note", "schedule-missing:bad", "step(owner):current", "clusters:waiting", "effective:waiting"],
    },
    withdrawn: {
      reason: "after a withdrawal nothing is to come",
      ticket: ticketOf("withdrawn", {}, { events: [event("submitted", 0), event("withdrawn", 5)] }),
      want: ["submitted:done", "withdrawn:ended"],
    },
    applying: {
      reason: "a cluster without an event is shown with its live state, and the effect is still to come",
      ticket: ticketOf("applying", { steps: approvedSteps, clusters: [cluster("m2", "Unreachable"), cluster("m1", "Pending")] }, { events: granted.slice(0, 6) }),
      want: ["submitted:done", "step(leader):done", "step(owner):done", "approved:done", "written:done", "compiled:done", "clusters(m1,m2):current", "effective:waiting"],
    },
    effective: {
      reason: "clusters are one node, sorted by name",
      ticket: ticketOf("effective", { steps: approvedSteps, clusters: [cluster("m1", "Realized"), cluster("m2", "Realized")] }, { events: granted }),
      want: ["submitted:done", "step(leader):done", "step(owner):done", "approved:done", "written:done", "compiled:done", "clusters(m1,m2):done", "effective:done"],
    },
    revoking: {
      reason: "the revocation has clusters of its own; the grant's stay as they were",
      ticket: ticketOf(
        "revoking",
        { steps: approvedSteps, clusters: [cluster("m1", "Realized"), cluster("m2", "Pending")] },
        { events: [...granted, event("revoke-requested", 9_000, { actor: bob }), event("revoke-written", 9_010), event("realized", 9_040, { cluster: "m1" })] },
      ),
      want: [
        "submitted:done", "step(leader):done", "step(owner):done", "approved:done", "written:done", "compiled:done", "clusters(m1,m2):done", "effective:done",
        "revoke-requested:ended", "revoke-written:done", "clusters(m1,m2):current", "revoked:waiting",
      ],
    },
    failed: {
      reason: "a failure says so, and promises no effect",
      ticket: ticketOf("failed", { steps: approvedSteps }, { events: [...granted.slice(0, 4), event("failed", 2_500)] }),
      want: ["submitted:done", "step(leader):done", "step(owner):done", "approved:done", "failed:bad"],
    },
  };
  for (const [name, { reason, ticket: of, want }] of Object.entries(cases)) {
    it(`${name}: ${reason}`, () => expect(outline(of)).toEqual(want));
  }

  it("measures from the approval, and for a revocation from its request", () => {
    const nodes = lineOf(
      ticketOf("revoked", { steps: approvedSteps }, { events: [...granted, event("revoke-requested", 9_000), event("realized", 9_040, { cluster: "m1" }), event("revoked", 9_055)] }),
    );
    const after = Object.fromEntries(nodes.map((node) => [`${node.kind} ${node.phase}`, node.afterMs]));
    expect(after).toMatchObject({ "approved grant": undefined, "written grant": 10, "clusters grant": 60, "effective grant": 61, "clusters revoke": 40, "revoked revoke": 55 });
  });

  it("gives the live state to the clusters of the present phase only", () => {
    const nodes = lineOf(
      ticketOf("revoking", { clusters: [cluster("m1", "Realized"), cluster("m2", "Unreachable")] }, { events: [...granted, event("revoke-requested", 9_000), event("realized", 9_040, { cluster: "m1" })] }),
    );
    const live = nodes.filter((node) => node.kind === "clusters").map((node) => node.clusters?.map((line) => line.live?.state));
    expect(live).toEqual([[undefined, undefined], ["Realized", "Unreachable"]]);
  });

  it("is one node for a step, whoever votes in it, and says who is still missing", () => {
    const security = step("security", "current", [alice, bob, carol], { quorum: 2, votes: [{ person: bob, onBehalfOf: alice, approve: true, at: event("comment", 3_000).at }] });
    const nodes = lineOf(ticketOf("pending", { steps: [security] }, { events: [event("submitted", 0), event("step-approved", 3_000, { step: "security", actor: bob, onBehalfOf: alice }), event("comment", 4_000, { actor: carol, comment: "Later." })] }));
    expect(nodes.map((node) => `${node.kind}:${node.status}`)).toEqual(["submitted:done", "step:current", "comment:note", "clusters:waiting", "effective:waiting"]);
    expect(nodes[1]?.votes).toEqual(security.votes);
  });

  it("keeps the votes that were voided, and asks the same steps again", () => {
    const nodes = lineOf(
      ticketOf("pending", { steps: [step("leader", "current", [carol]), step("owner", "waiting", [bob])] }, { events: [...granted.slice(0, 3), event("voided", 2_500, { lines: [{ code: "verbatim", params: { text: "+ app/888 -> 6380/TCP" }, text: "+ app/888 -> 6380/TCP" }] })] }),
    );
    expect(nodes.map((node) => `${node.kind}${node.step ? `(${node.step.name})` : ""}:${node.status}`)).toEqual([
      "submitted:done", "step(leader):ended", "step(owner):ended", "voided:bad", "step(leader):current", "step(owner):waiting", "clusters:waiting", "effective:waiting",
    ]);
    expect(nodes[1]?.votes?.map((vote) => vote.person.id)).toEqual(["carol"]);
  });

  it("places an automatically approved step before the approval", () => {
    const auto = step("leader", "approved", [], { auto: true });
    expect(outline(ticketOf("approved", { steps: [auto, approved("owner", bob)] }, { events: [event("submitted", 0), event("step-approved", 5, { step: "owner", actor: bob }), event("approved", 5)] }))).toEqual([
      "submitted:done", "step(owner):done", "step(leader):done", "approved:done", "effective:waiting",
    ]);
  });

  it("takes for each item its own events and those about all", () => {
    const of = ticket({
      items: [item({ state: "rejected", steps: [step("leader", "rejected", [carol])] }), item({ position: 1, steps: [step("leader", "current", [carol])] })],
      events: [event("submitted", 0), event("step-rejected", 5, { item: 0, step: "leader", actor: carol }), event("comment", 6, { actor: bob, comment: "Hm." })],
    });
    expect(outline(of, 0)).toEqual(["submitted:done", "step(leader):bad", "comment:note"]);
    expect(outline(of, 1)).toEqual(["submitted:done", "comment:note", "step(leader):current", "clusters:waiting", "effective:waiting"]);
  });

  it("claims no approval where glass was broken, and ends with the review that it waits for", () => {
    const review = step("security", "current", [bob]);
    expect(outline(ticketOf("effective", { steps: [], review }, { breakGlass: true, events: [event("submitted", 0), event("break-glass", 1, { actor: alice }), event("approved", 1), event("effective", 2)] }))).toEqual([
      "submitted:done", "break-glass:note", "effective:done", "review(security):current",
    ]);
  });
});
