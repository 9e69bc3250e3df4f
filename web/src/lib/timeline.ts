/**
 * An item's single line from request to effect, as nodes. Pure. Past nodes come from the ticket's events in their
 * order; what is still to come follows from the item's steps and the live member states. A step is one node however
 * many people vote in it; a voided chain leaves its nodes behind and begins new ones.
 */
import type { ClusterState, Message, Person, Step, Ticket, TicketEvent, TicketItem, Vote } from "../api/types";

/** NodeStatus is the status of a node, which selects its style. */
export type NodeStatus = "done" | "current" | "waiting" | "bad" | "ended" | "note";
/** Phase is the part of an item's life that a node belongs to: until the grant is effective, or its revocation. */
export type Phase = "grant" | "revoke";

/** ClusterLine is the state of one member in a node of the timeline. */
export interface ClusterLine {
  cluster: string;
  realizedAt?: string;
  revision?: string;
  /** The current state; absent for a phase that is over. */
  live?: ClusterState;
}

/** plain maps the events that become one node each to the status of the node. */
const plain = {
  submitted: "done",
  approved: "done",
  withdrawn: "ended",
  written: "done",
  compiled: "done",
  effective: "done",
  failed: "bad",
  "revoke-requested": "ended",
  "revoke-written": "done",
  revoked: "ended",
  expired: "ended",
  comment: "note",
  voided: "bad",
  escalated: "note",
  reminded: "note",
  "last-reminder": "note",
  "schedule-missing": "bad",
  "timed-out": "bad",
  "expires-soon": "note",
  shortened: "note",
  "review-confirmed": "done",
  "review-rejected": "bad",
  "break-glass": "note",
  shrunk: "note",
  reopened: "note",
} as const satisfies Partial<Record<TicketEvent["kind"], NodeStatus>>;

/** NodeKind is the kind of a node, which selects its icon and title. */
export type NodeKind = keyof typeof plain | "step" | "clusters" | "review";

/** TimelineNode is one node of the timeline. */
export interface TimelineNode {
  key: string;
  kind: NodeKind;
  status: NodeStatus;
  phase: Phase;
  at?: string;
  /** Since the approval (grant) or the request to revoke (revoke); absent before either. */
  afterMs?: number;
  actor?: Person;
  onBehalfOf?: Person;
  comment?: string;
  /** The reason of an entry that was made by the portal. */
  message?: Message;
  /** The access that the approvals did not cover, or that is no longer part of the request. */
  lines?: Message[];
  revision?: string;
  step?: Step;
  votes?: Vote[];
  clusters?: ClusterLine[];
}

const endings: Partial<Record<TicketItem["state"], TicketEvent["kind"][]>> = {
  rejected: ["step-rejected"],
  withdrawn: ["withdrawn"],
  "timed-out": ["timed-out"],
  revoked: ["revoked"],
  // The access expired first, and then every member was read back without it.
  expired: ["revoked", "expired"],
};

const isAbout = (event: TicketEvent, item: Pick<TicketItem, "position">) => event.item === undefined || event.item === item.position;

/** endedAt returns when an item that is over ended, and undefined for any other. */
export function endedAt(ticket: Ticket, item: TicketItem): string | undefined {
  const kinds = endings[item.state];
  if (!kinds) return undefined;
  return ticket.events.findLast((event) => isAbout(event, item) && kinds.includes(event.kind))?.at ?? ticket.updatedAt;
}

const stepStatuses: Record<Step["state"], NodeStatus> = { approved: "done", rejected: "bad", current: "current", "timed-out": "bad", skipped: "ended", waiting: "waiting" };

function since(origin: string | undefined, at: string): number | undefined {
  if (origin === undefined) return undefined;
  const distance = Date.parse(at) - Date.parse(origin);
  return Number.isFinite(distance) && distance >= 0 ? distance : undefined;
}

const underWay = (item: TicketItem) => ["approved", "applying", "revoking"].includes(item.state);

class Line {
  readonly nodes: TimelineNode[] = [];
  phase: Phase = "grant";
  origin: string | undefined;
  /** Nodes of the current approval chain by the name of the step. */
  private round = new Map<string, TimelineNode>();

  add(event: TicketEvent, kind: NodeKind, status: NodeStatus): TimelineNode {
    const node: TimelineNode = { key: `${kind}-${this.nodes.length}`, kind, status, phase: this.phase, at: event.at };
    const afterMs = since(this.origin, event.at);
    if (afterMs !== undefined && event.at !== this.origin) node.afterMs = afterMs;
    if (event.actor) node.actor = event.actor;
    if (event.onBehalfOf) node.onBehalfOf = event.onBehalfOf;
    if (event.comment) node.comment = event.comment;
    if (event.message) node.message = event.message;
    if (event.lines) node.lines = event.lines;
    if (event.revision) node.revision = event.revision;
    this.nodes.push(node);
    return node;
  }

  vote(event: TicketEvent) {
    const name = event.step ?? "";
    let node = this.round.get(name);
    if (!node) {
      node = { key: `step-${name}-${this.nodes.length}`, kind: "step", status: "ended", phase: this.phase, step: { name, state: "skipped", approvers: [], quorum: 1, votes: [] }, votes: [] };
      this.round.set(name, node);
      this.nodes.push(node);
    }
    node.at = event.at;
    if (event.actor) {
      const vote: Vote = { person: event.actor, approve: event.kind === "step-approved", at: event.at };
      if (event.onBehalfOf) vote.onBehalfOf = event.onBehalfOf;
      if (event.through) vote.through = event.through;
      if (event.comment) vote.comment = event.comment;
      (node.votes ??= []).push(vote);
    }
  }

  /** voidRound discards the votes of the current round. */
  voidRound() {
    this.round = new Map();
  }

  /** Adds a member's event to the phase's group of lines, making the group where its first event stands. */
  cluster(event: TicketEvent) {
    let group = this.nodes.findLast((node) => node.kind === "clusters" && node.phase === this.phase);
    if (!group) {
      group = { key: `clusters-${this.phase}-${this.nodes.length}`, kind: "clusters", phase: this.phase, status: "done", clusters: [] };
      this.nodes.push(group);
    }
    const lines = (group.clusters ??= []);
    let line = lines.find((each) => each.cluster === event.cluster);
    if (!line) {
      line = { cluster: event.cluster ?? "" };
      lines.push(line);
    }
    if (event.revision) line.revision = event.revision;
    if (event.kind === "realized") {
      line.realizedAt = event.at;
      group.at = event.at;
      const afterMs = since(this.origin, event.at);
      if (afterMs !== undefined) group.afterMs = afterMs;
    }
  }

  /** Adds the item's steps. The steps, not the events, determine which node is current. */
  steps(item: TicketItem) {
    for (const step of item.steps) {
      const node = this.round.get(step.name);
      // After the chain's end the remaining steps will not happen: they are left out.
      if (!node && item.state !== "pending" && step.votes.length === 0 && !step.auto) continue;
      const status = item.state !== "pending" && step.state === "current" ? "ended" : stepStatuses[step.state];
      if (node) {
        node.step = step;
        node.status = status;
        if (step.votes.length > 0) node.votes = step.votes;
        continue;
      }
      const made: TimelineNode = { key: `step-${step.name}`, kind: "step", status, phase: "grant", step, votes: step.votes };
      const at = step.votes.at(-1)?.at;
      if (at) made.at = at;
      // An automatically approved step has no event; it is placed before the approval that it led to.
      const approved = this.nodes.findIndex((each) => each.kind === "approved");
      if (approved >= 0) this.nodes.splice(approved, 0, made);
      else this.nodes.push(made);
    }
  }

  /** Adds the live states to the phase of the item. */
  live(item: TicketItem) {
    let group = this.nodes.findLast((node) => node.kind === "clusters" && node.phase === this.phase);
    if (!group) {
      if (!underWay(item) || item.clusters.length === 0) return;
      group = { key: `clusters-${this.phase}-live`, kind: "clusters", phase: this.phase, status: "current", clusters: [] };
      this.nodes.push(group);
    }
    const lines = (group.clusters ??= []);
    for (const live of item.clusters) {
      const line = lines.find((each) => each.cluster === live.cluster);
      if (line) line.live = live;
      else lines.push({ cluster: live.cluster, live });
    }
    lines.sort((a, b) => a.cluster.localeCompare(b.cluster));
    if (underWay(item)) {
      group.status = "current";
      // The time of the last cluster is the group's, and it is not known yet.
      delete group.at;
      delete group.afterMs;
    }
  }

  later(kind: NodeKind) {
    this.nodes.push({ key: `${kind}-later`, kind, status: "waiting", phase: this.phase });
  }
}

/** timeline returns the nodes of an item: the past ones from the ticket's events, and then those that are still to come. */
export function timeline(ticket: Ticket, item: TicketItem): TimelineNode[] {
  const line = new Line();
  for (const event of ticket.events) {
    if (!isAbout(event, item)) continue;
    switch (event.kind) {
      case "step-approved":
      case "step-rejected":
        line.vote(event);
        break;
      case "realized":
        line.cluster(event);
        break;
      case "approved":
        line.origin = event.at;
        // Break-glass access has no approval.
        if (!ticket.breakGlass) line.add(event, "approved", "done");
        break;
      case "revoke-requested":
      case "expired":
        line.phase = "revoke";
        line.origin = event.at;
        line.add(event, event.kind, plain[event.kind]);
        break;
      case "voided":
      case "reopened":
        line.voidRound();
        line.origin = undefined;
        line.add(event, event.kind, plain[event.kind]);
        break;
      case "submitted":
        line.add(event, "submitted", "done").comment = ticket.reason;
        break;
      case "break-glass":
        // The comment repeats the reason of the request, which is shown above.
        delete line.add(event, "break-glass", plain["break-glass"]).comment;
        break;
      default:
        line.add(event, event.kind, plain[event.kind]);
    }
  }
  line.steps(item);

  if (item.state === "pending") {
    line.later("clusters");
    line.later("effective");
  } else {
    line.live(item);
    if (["approved", "applying"].includes(item.state)) line.later("effective");
    if (item.state === "revoking") line.later("revoked");
  }
  const review = item.review;
  if (review?.state === "current") line.nodes.push({ key: "review", kind: "review", status: "current", phase: line.phase, step: review, votes: review.votes });
  return line.nodes;
}
