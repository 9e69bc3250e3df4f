/** Test objects: complete by default, and each test names only what it is about. */
import type { Application, CatalogRef, ClusterState, Connection, Me, NodeSummary, Person, Resource, RolloutCard, Step, Ticket, TicketEvent, TicketItem, TicketState, Vote } from "../api/types";

export const alice: Person = { id: "alice", displayName: "Alice Zhang" };
export const bob: Person = { id: "bob", displayName: "Bob Li" };
export const carol: Person = { id: "carol", displayName: "Carol Wu" };

export const app888: CatalogRef & { id: string } = { id: "app-888", name: "trnv1:rsc:trip-com:iam:sa:app/888", title: "Payments API" };
export const bobsCluster: CatalogRef & { id: string } = { id: "bobs-cluster", name: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", title: "Bob’s cluster" };

export function me(over: Partial<Me> = {}): Me {
  return { person: alice, roles: ["requester"], groups: [], pendingApprovals: 0, sessionExpiresAt: "2026-11-20T20:00:00Z", ...over };
}

export function application(over: Partial<Application> = {}): Application {
  return { ...app888, owners: [{ kind: "person", id: "alice", displayName: "Alice Zhang" }], mine: true, denied24h: 0, ...over };
}

export function resource(over: Partial<Resource> = {}): Resource {
  return {
    ...bobsCluster,
    class: "redis",
    owners: [{ kind: "person", id: "bob", displayName: "Bob Li" }],
    sensitivity: "medium",
    mine: false,
    actions: [{ name: "redis:connect", ports: ["6379/TCP"] }],
    ...over,
  };
}

export function connection(over: Partial<Connection> = {}): Connection {
  return {
    cluster: "m1",
    subject: app888,
    resource: bobsCluster,
    action: "redis:connect",
    port: 6379,
    protocol: "TCP",
    decision: "default-denied",
    verdict: "dropped",
    count: 12,
    firstSeen: "2026-11-20T09:00:00Z",
    lastSeen: "2026-11-20T10:00:00Z",
    ...over,
  };
}

export function cluster(name: string, state: ClusterState["state"], over: Partial<ClusterState> = {}): ClusterState {
  return { cluster: name, state, ...over };
}

/** The nodes of one member, all realized. */
export function nodeSummary(over: Partial<NodeSummary> = {}): NodeSummary {
  return { members: 1, unreported: 0, total: 3, realized: 3, lagging: 0, unknown: 0, clusters: [], messages: [], ...over };
}

export function step(name: string, state: Step["state"], approvers: Person[], over: Partial<Step> = {}): Step {
  return { name, state, approvers, quorum: 1, votes: [], ...over };
}

/** A step that one person approved. */
export function approved(name: string, by: Person, over: Partial<Vote> = {}): Step {
  return step(name, "approved", [by], { votes: [{ person: by, approve: true, at: "2026-11-20T10:00:01Z", ...over }] });
}

/** An event so many milliseconds after ten o'clock. */
export function event(kind: TicketEvent["kind"], ms: number, over: Partial<TicketEvent> = {}): TicketEvent {
  return { kind, at: new Date(Date.UTC(2026, 10, 20, 10) + ms).toISOString(), ...over };
}

export const nothing: TicketItem["can"] = { approve: false, reject: false, withdraw: false, revoke: false, extend: false, review: false };

export function item(over: Partial<TicketItem> = {}): TicketItem {
  return {
    position: 0,
    state: "pending",
    application: app888,
    resource: bobsCluster,
    actions: ["redis:connect"],
    sid: "t-42-1",
    steps: [step("leader", "current", [carol]), step("owner", "waiting", [bob])],
    clusters: [],
    can: nothing,
    ...over,
  };
}

export function ticket(over: Partial<Ticket> = {}): Ticket {
  return {
    id: "T-42",
    kind: "grant",
    state: "pending",
    version: 3,
    requester: alice,
    reason: "Checkout needs it.",
    items: [item()],
    events: [event("submitted", 0, { actor: alice })],
    createdAt: "2026-11-20T10:00:00Z",
    updatedAt: "2026-11-20T10:00:00Z",
    can: nothing,
    ...over,
  };
}

/** A ticket of one item, which is in the ticket's state and can be done with what the ticket can. */
export function ticketOf(state: TicketState, of: Partial<TicketItem> = {}, over: Partial<Ticket> = {}): Ticket {
  const can = { ...nothing, ...of.can };
  return ticket({ state, items: [item({ state, ...of, can })], can, ...over });
}

/** A resource in audit that is known well enough. */
export function card(over: Partial<RolloutCard> = {}): RolloutCard {
  return {
    resource: bobsCluster,
    class: "redis",
    owners: [{ kind: "person", id: "bob", displayName: "Bob Li" }],
    sensitivity: "medium",
    stage: "refine",
    score: 82,
    threshold: 70,
    enough: true,
    missing: [],
    mode: "Audit",
    effectiveMode: "Audit",
    onboarded: true,
    clusters: [cluster("m1", "Realized", { mode: "Audit" }), cluster("m2", "Realized", { mode: "Audit" })],
    guard: { enabled: true, reopens: false, limit: 20, windowSeconds: 300 },
    clients: 4,
    newcomers: 1,
    can: { announce: true, advance: true, guard: true, toggle: true, override: false },
    ...over,
  };
}
