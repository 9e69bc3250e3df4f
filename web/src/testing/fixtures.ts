/** Test objects: complete by default, and each test names only what it is about. */
import type { Application, CatalogRef, ClusterState, Connection, Me, NodeSummary, Person, Resource, RolloutCard, Step, Ticket, TicketEvent, TicketItem, TicketState, Vote } from "../api/types";

/** alice is the person who is signed in. */
export const alice: Person = { id: "alice", displayName: "Alice Zhang" };
/** bob is the owner of the resource. */
export const bob: Person = { id: "bob", displayName: "Bob Li" };
/** carol is the leader who approves first. */
export const carol: Person = { id: "carol", displayName: "Carol Wu" };

/** app888 is the application of the test objects. */
export const app888: CatalogRef & { id: string } = { id: "app-888", name: "trnv1:rsc:trip-com:iam:sa:app/888", title: "Payments API" };
/** bobsCluster is the resource of the test objects. */
export const bobsCluster: CatalogRef & { id: string } = { id: "bobs-cluster", name: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", title: "Bob’s cluster" };

/** me returns the signed-in person. */
export function me(over: Partial<Me> = {}): Me {
  return { person: alice, roles: ["requester"], groups: [], pendingApprovals: 0, sessionExpiresAt: "2026-11-20T20:00:00Z", ...over };
}

/** application returns an application of Alice. */
export function application(over: Partial<Application> = {}): Application {
  return { ...app888, owners: [{ kind: "person", id: "alice", displayName: "Alice Zhang" }], mine: true, denied24h: 0, ...over };
}

/** resource returns a resource of Bob. */
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

/** connection returns a refused connection. */
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

/** cluster returns the state of a unit in one member. */
export function cluster(name: string, state: ClusterState["state"], over: Partial<ClusterState> = {}): ClusterState {
  return { cluster: name, state, ...over };
}

/** nodeSummary returns the summary of one member with three nodes, all of which enforce the wanted revision. */
export function nodeSummary(over: Partial<NodeSummary> = {}): NodeSummary {
  return { members: 1, unreported: 0, total: 3, realized: 3, lagging: 0, unknown: 0, clusters: [], messages: [], ...over };
}

/** step returns an approval step. */
export function step(name: string, state: Step["state"], approvers: Person[], over: Partial<Step> = {}): Step {
  return { name, state, approvers, quorum: 1, votes: [], ...over };
}

/** approved returns a step that one person approved. */
export function approved(name: string, by: Person, over: Partial<Vote> = {}): Step {
  return step(name, "approved", [by], { votes: [{ person: by, approve: true, at: "2026-11-20T10:00:01Z", ...over }] });
}

/** event returns an event of a ticket, which happened that many milliseconds after 10:00. */
export function event(kind: TicketEvent["kind"], ms: number, over: Partial<TicketEvent> = {}): TicketEvent {
  return { kind, at: new Date(Date.UTC(2026, 10, 20, 10) + ms).toISOString(), ...over };
}

/** nothing contains no permission for an item or a ticket. */
export const nothing: TicketItem["can"] = { approve: false, reject: false, withdraw: false, revoke: false, extend: false, review: false };

/** item returns a pending item of a ticket. */
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

/** ticket returns a pending ticket with one item. */
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

/** ticketOf returns a ticket with one item. Both have the same state and permissions. */
export function ticketOf(state: TicketState, of: Partial<TicketItem> = {}, over: Partial<Ticket> = {}): Ticket {
  const can = { ...nothing, ...of.can };
  return ticket({ state, items: [item({ state, ...of, can })], can, ...over });
}

/** card returns a card of a resource in Audit whose evidence score reaches the threshold. */
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
