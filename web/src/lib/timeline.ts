/**
 * A ticket's single line from request to effect, as nodes. Pure. Past nodes come from the ticket's
 * events in their order; what is still to come follows from the steps and the live cluster states.
 */
import type { ClusterState, Person, Step, Ticket, TicketEvent } from "../api/types";

export type NodeStatus = "done" | "current" | "waiting" | "bad" | "ended";
export type Phase = "grant" | "revoke";

export interface ClusterLine {
  cluster: string;
  propagatedAt?: string;
  realizedAt?: string;
  revision?: string;
  /** The state now; absent for a phase that is over. */
  live?: ClusterState;
}

export type NodeKind =
  | "submitted" | "step" | "approved" | "withdrawn" | "written" | "compiled" | "clusters" | "effective"
  | "failed" | "revoke-requested" | "revoke-written" | "revoked" | "expired";

export interface TimelineNode {
  key: string;
  kind: NodeKind;
  status: NodeStatus;
  phase: Phase;
  at?: string;
  /** Since the approval (grant) or the request to revoke (revoke); absent before either. */
  afterMs?: number;
  actor?: Person;
  comment?: string;
  revision?: string;
  step?: Step;
  clusters?: ClusterLine[];
}

const done = ["effective", "revoking", "revoked", "expired"];

const endings: Partial<Record<Ticket["state"], TicketEvent["kind"][]>> = {
  rejected: ["step-rejected"],
  withdrawn: ["withdrawn"],
  revoked: ["revoked"],
  // Its time was over first, and then every member was seen without it.
  expired: ["revoked", "expired"],
};

/** When a ticket that is over ended; undefined for any other. */
export function endedAt(ticket: Ticket): string | undefined {
  const kinds = endings[ticket.state];
  if (!kinds) return undefined;
  return ticket.events.findLast((event) => kinds.includes(event.kind))?.at ?? ticket.updatedAt;
}

function stepStatus(step: Step): NodeStatus {
  switch (step.state) {
    case "approved":
      return "done";
    case "rejected":
      return "bad";
    case "current":
      return "current";
    case "skipped":
      return "ended";
    case "waiting":
      return "waiting";
  }
}

function since(origin: string | undefined, at: string): number | undefined {
  if (origin === undefined) return undefined;
  const distance = Date.parse(at) - Date.parse(origin);
  return Number.isFinite(distance) && distance >= 0 ? distance : undefined;
}

/** Adds a cluster's event to the phase's group of lines, making the group where its first event stands. */
function addClusterEvent(nodes: TimelineNode[], event: TicketEvent, phase: Phase, afterMs: number | undefined) {
  let group = nodes.findLast((node) => node.kind === "clusters" && node.phase === phase);
  if (!group) {
    group = { key: `clusters-${phase}-${nodes.length}`, kind: "clusters", phase, status: "done", clusters: [] };
    nodes.push(group);
  }
  const lines = (group.clusters ??= []);
  let line = lines.find((each) => each.cluster === event.cluster);
  if (!line) {
    line = { cluster: event.cluster ?? "" };
    lines.push(line);
  }
  if (event.revision) line.revision = event.revision;
  if (event.kind === "propagated") line.propagatedAt = event.at;
  if (event.kind === "realized") {
    line.realizedAt = event.at;
    group.at = event.at;
    if (afterMs !== undefined) group.afterMs = afterMs;
  }
}

/** The live states belong to the phase that the ticket is in. */
function addLiveStates(nodes: TimelineNode[], ticket: Ticket, phase: Phase) {
  const underWay = ["approved", "applying", "revoking"].includes(ticket.state);
  let group = nodes.findLast((node) => node.kind === "clusters" && node.phase === phase);
  if (!group) {
    if (!underWay || ticket.clusters.length === 0) return;
    group = { key: `clusters-${phase}-live`, kind: "clusters", phase, status: "current", clusters: [] };
    nodes.push(group);
  }
  const lines = (group.clusters ??= []);
  for (const live of ticket.clusters) {
    const line = lines.find((each) => each.cluster === live.cluster);
    if (line) line.live = live;
    else lines.push({ cluster: live.cluster, live });
  }
  lines.sort((a, b) => a.cluster.localeCompare(b.cluster));
  if (underWay) {
    group.status = "current";
    // The time of the last cluster is the group's, and it is not known yet.
    delete group.at;
    delete group.afterMs;
  }
}

export function timeline(ticket: Ticket): TimelineNode[] {
  const nodes: TimelineNode[] = [];
  const shownSteps = new Set<string>();
  let phase: Phase = "grant";
  let origin: string | undefined;

  const add = (event: TicketEvent, kind: NodeKind, status: NodeStatus, extra: Partial<TimelineNode> = {}) => {
    const node: TimelineNode = { key: `${kind}-${nodes.length}`, kind, status, phase, at: event.at, ...extra };
    const afterMs = since(origin, event.at);
    if (afterMs !== undefined && event.at !== origin) node.afterMs = afterMs;
    if (event.actor) node.actor = event.actor;
    if (event.comment) node.comment = event.comment;
    if (event.revision) node.revision = event.revision;
    nodes.push(node);
  };

  for (const event of ticket.events) {
    switch (event.kind) {
      case "submitted":
        add(event, "submitted", "done", { comment: ticket.reason });
        break;
      case "step-approved":
      case "step-rejected": {
        const step = ticket.steps.find((each) => each.name === event.step);
        if (step) shownSteps.add(step.name);
        add(event, "step", event.kind === "step-approved" ? "done" : "bad", {
          step: step ?? { name: event.step ?? "", state: event.kind === "step-approved" ? "approved" : "rejected", approvers: [] },
        });
        break;
      }
      case "approved":
        origin = event.at;
        add(event, "approved", "done");
        break;
      case "revoke-requested":
      case "expired":
        phase = "revoke";
        origin = event.at;
        add(event, event.kind, "ended");
        break;
      case "propagated":
      case "realized":
        addClusterEvent(nodes, event, phase, since(origin, event.at));
        break;
      case "written":
      case "compiled":
      case "revoke-written":
      case "effective":
        add(event, event.kind, "done");
        break;
      case "revoked":
      case "withdrawn":
        add(event, event.kind, "ended");
        break;
      case "failed":
        add(event, "failed", "bad");
        break;
    }
  }

  // After a rejection or a withdrawal the remaining steps will not happen: they are left out.
  if (ticket.state === "pending") {
    for (const step of ticket.steps) {
      if (shownSteps.has(step.name)) continue;
      nodes.push({ key: `step-${step.name}`, kind: "step", status: stepStatus(step), phase, step });
    }
    nodes.push({ key: "clusters-later", kind: "clusters", status: "waiting", phase });
    nodes.push({ key: "effective-later", kind: "effective", status: "waiting", phase });
  } else {
    addLiveStates(nodes, ticket, phase);
    if (!done.includes(ticket.state) && ["approved", "applying"].includes(ticket.state)) nodes.push({ key: "effective-later", kind: "effective", status: "waiting", phase });
    if (ticket.state === "revoking") nodes.push({ key: "revoked-later", kind: "revoked", status: "waiting", phase });
  }
  return nodes;
}
