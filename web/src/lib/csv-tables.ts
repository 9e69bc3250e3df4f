/**
 * The tables of the portal as files. An end of a connection or statement has its full name and its title, a person their id and name,
 * and a time is in UTC. Messages are in English.
 */
import type {
  Access, AccessEdge, AccessPackage, AccessReview, ActiveDowngrade, Application, CatalogRef, CatalogSource, ClassInfo, ClusterState, Connection, Decision, Delegation, DeniedConnection,
  DowngradeRun, Entity, Finding, FlowLoss, Impact, ImpactLine, LedgerLine, Member, MemberCounts, MemberFinding, MemberUnit, PackageHolder, PackageSummary, Person, PolicyStatement,
  PolicySummary, ProposalLine, RawFlow, Resource, ReviewLine, SessionInfo, SyncChange, Token, SeenEvidence, Ticket, TicketItem, UnattributedLine, Undelivered, UnknownPortLine, Unused, Use,
  Workload,
} from "../api/types";
import type { CsvTable } from "./csv";
import type { FoldedConnection } from "./fold";
import { hoursText } from "./hours";

const person = (one: Person | undefined): string | undefined => one && (one.displayName === one.id ? one.id : `${one.displayName} (${one.id})`);
const people = (list: readonly { id: string; displayName: string }[] | undefined): string[] => (list ?? []).map((each) => `${each.displayName} (${each.id})`);
const names = (refs: readonly CatalogRef[] | undefined): string[] => (refs ?? []).map(({ name, title }) => name || title);
const titles = (refs: readonly CatalogRef[] | undefined): string[] => (refs ?? []).map(({ title }) => title);
/** clusters returns the members with their states. Members that the server counts and does not list are named as a number. */
function clusters(list: readonly ClusterState[] | undefined, counts: MemberCounts | undefined): string[] {
  const more = counts === undefined ? 0 : counts.total - counts.listed;
  return [...(list ?? []).map(({ cluster, state }) => `${cluster}: ${state}`), ...(more > 0 ? [`${more} more members`] : [])];
}

/** ends returns the columns of the two ends of a connection or statement. */
const ends = <Row extends { subject: CatalogRef; resource: CatalogRef }>() => ({
  subject: (row: Row) => row.subject.name,
  "subject title": (row: Row) => row.subject.title,
  resource: (row: Row) => row.resource.name,
  "resource title": (row: Row) => row.resource.title,
});

/** seen returns the columns of what was seen of a client. */
const seen = <Row extends { evidence: SeenEvidence }>() => ({
  connections: (row: Row) => row.evidence.count,
  "first seen": (row: Row) => row.evidence.firstSeen,
  "last seen": (row: Row) => row.evidence.lastSeen,
  days: (row: Row) => row.evidence.days,
  members: (row: Row) => row.evidence.clusters,
});

/** itemText returns what an item of a ticket is about. */
const itemText = ({ application, resource, object }: TicketItem): string =>
  [application?.title, resource?.title, object?.name].filter((each) => each !== undefined).join(" → ");

/** ticketsCSV is the table of requests. */
export const ticketsCSV: CsvTable<Ticket> = {
  file: "requests",
  columns: {
    ticket: (row) => row.id,
    kind: (row) => row.kind,
    state: (row) => row.state,
    "break glass": (row) => row.breakGlass ?? false,
    requester: (row) => person(row.requester),
    items: (row) => row.items.map(itemText),
    actions: (row) => [...new Set(row.items.flatMap(({ actions }) => actions ?? []))],
    reason: (row) => row.reason,
    message: (row) => row.message?.text,
    created: (row) => row.createdAt,
    updated: (row) => row.updatedAt,
  },
};

/** lastUsed returns when an access was last used, "not used" if it is known that it was not, and otherwise "unknown". */
const lastUsed = (use: Use): string => use?.lastUsed ?? (use?.state === "unused" ? "not used" : "unknown");

/** accessCSV is the table of the statements about one application or resource. */
export const accessCSV = (about: string, lastUse: (row: Access) => Use): CsvTable<Access> => ({
  file: `access-${about}`,
  columns: {
    ...ends<Access>(),
    effect: (row) => row.effect,
    actions: (row) => row.actions,
    counts: (row) => row.counting,
    since: (row) => row.since,
    until: (row) => row.notAfter,
    hours: (row) => row.hours && hoursText(row.hours, "en"),
    "last used": (row) => lastUsed(lastUse(row)),
    members: (row) => clusters(row.clusters, row.members),
    ticket: (row) => row.ticket,
    reason: (row) => row.reason,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
  },
});

/** edgesCSV is the table of the access map. */
export const edgesCSV: CsvTable<AccessEdge> = {
  file: "access-map",
  columns: {
    ...ends<AccessEdge>(),
    "subject kind": (row) => row.subjectKind,
    "subject teams": (row) => people(row.subjectTeams),
    "resource teams": (row) => people(row.resourceTeams),
    class: (row) => row.class,
    mode: (row) => row.mode,
    effect: (row) => row.effect,
    actions: (row) => row.actions,
    counts: (row) => row.counting,
    until: (row) => row.notAfter,
    hours: (row) => row.hours && hoursText(row.hours, "en"),
    "last used": (row) => lastUsed({ state: row.use, lastUsed: row.lastUsed }),
    origin: (row) => row.origin.kind,
    ticket: (row) => row.ticket,
    reason: (row) => row.reason,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
  },
};

/** connectionsCSV is the table of connections, one row for each member, verdict and statement. */
export const connectionsCSV: CsvTable<Connection> = {
  file: "connections",
  columns: {
    ...ends<Connection>(),
    action: (row) => row.action,
    port: (row) => row.port,
    protocol: (row) => row.protocol,
    "from member": (row) => row.sourceCluster ?? row.cluster,
    member: (row) => row.cluster,
    decision: (row) => row.decision,
    verdict: (row) => row.verdict,
    disagrees: (row) => row.disagrees ?? false,
    connections: (row) => row.count,
    "first seen": (row) => row.firstSeen,
    "last seen": (row) => row.lastSeen,
    ticket: (row) => row.ticket,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
  },
};

/** foldedConnectionsCSV is the table of connections of which those of all members are one row. */
export const foldedConnectionsCSV: CsvTable<FoldedConnection> = {
  file: "connections",
  columns: {
    ...ends<FoldedConnection>(),
    action: (row) => row.action,
    ports: (row) => row.ports,
    decisions: (row) => row.decisions,
    verdicts: (row) => row.verdicts,
    "refused but let through": (row) => row.letThrough,
    members: (row) => row.clusters.map(({ cluster }) => cluster),
    connections: (row) => row.count,
    "last seen": (row) => row.lastSeen,
    ticket: (row) => row.ticket,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
  },
};

/** rawFlowsCSV is the table of single flows. */
export const rawFlowsCSV: CsvTable<RawFlow> = {
  file: "flows",
  columns: {
    time: (row) => row.time,
    member: (row) => row.cluster,
    node: (row) => row.node,
    "from member": (row) => row.sourceCluster ?? row.cluster,
    ...ends<RawFlow>(),
    "source address": (row) => row.sourceAddress,
    "source port": (row) => row.sourcePort,
    "destination address": (row) => row.destinationAddress,
    port: (row) => row.port,
    protocol: (row) => row.protocol,
    action: (row) => row.action,
    decision: (row) => row.decision,
    verdict: (row) => row.verdict,
    disagrees: (row) => row.disagrees ?? false,
    reason: (row) => row.reason?.text,
    count: (row) => row.count,
    ticket: (row) => row.ticket,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
  },
};

/** lossesCSV is the table of flows that are known to be missing. */
export const lossesCSV: CsvTable<FlowLoss> = {
  file: "missing-flows",
  columns: { member: (row) => row.cluster, node: (row) => row.node, reason: (row) => row.reason, count: (row) => (row.count > 0 ? row.count : undefined), from: (row) => row.from, to: (row) => row.to },
};

/** unusedCSV is the table of statements without traffic. */
export const unusedCSV: CsvTable<Unused> = {
  file: "unused-access",
  columns: {
    subjects: (row) => names(row.subjects),
    "subject titles": (row) => titles(row.subjects),
    resources: (row) => names(row.resources),
    "resource titles": (row) => titles(row.resources),
    effect: (row) => row.effect,
    actions: (row) => row.actions,
    "last used": (row) => row.lastUsed ?? "not used",
    "days observed": (row) => row.daysObserved,
    evidence: (row) => row.reason.text,
    ticket: (row) => row.ticket,
    reason: (row) => row.ticketReason,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
  },
};

/** applicationsCSV is the table of applications. */
export const applicationsCSV: CsvTable<Application> = {
  file: "applications",
  columns: {
    id: (row) => row.id,
    name: (row) => row.name,
    title: (row) => row.title,
    description: (row) => row.description,
    environment: (row) => row.environment,
    owners: (row) => people(row.owners),
    "refused in 24 hours": (row) => row.denied24h,
  },
};

/** resourcesCSV is the table of resources. */
export const resourcesCSV: CsvTable<Resource> = {
  file: "resources",
  columns: {
    id: (row) => row.id,
    name: (row) => row.name,
    title: (row) => row.title,
    description: (row) => row.description,
    class: (row) => row.class,
    environment: (row) => row.environment,
    sensitivity: (row) => row.sensitivity,
    mode: (row) => row.protection?.effectiveMode,
    members: (row) => clusters(row.protection?.clusters, row.protection?.members),
    owners: (row) => people(row.owners),
    "refused in 24 hours": (row) => row.denied24h,
  },
};

/** entitiesCSV is the table of the catalog. */
export const entitiesCSV: CsvTable<Entity> = {
  file: "catalog",
  columns: {
    kind: (row) => row.kind,
    id: (row) => row.id,
    title: (row) => row.title,
    name: (row) => row.name,
    description: (row) => row.description,
    owners: (row) => row.owners,
    environment: (row) => row.environment,
    sensitivity: (row) => row.sensitivity,
    email: (row) => row.email,
    leader: (row) => row.leader,
    parent: (row) => row.parent,
    members: (row) => row.members,
    source: (row) => row.source,
    gone: (row) => row.gone ?? false,
  },
};

/** workloadsCSV is the table of external workloads. */
export const workloadsCSV: CsvTable<Workload> = {
  file: "external-workloads",
  columns: {
    id: (row) => row.id,
    subject: (row) => row.subject,
    addresses: (row) => row.addresses,
    description: (row) => row.description,
    source: (row) => row.source,
    accepted: (row) => row.accepted,
    message: (row) => row.message?.text,
  },
};

/** delegationsCSV is the table of delegations. */
export const delegationsCSV: CsvTable<Delegation> = {
  file: "delegations",
  columns: {
    from: (row) => person(row.from),
    to: (row) => person(row.to),
    start: (row) => row.start,
    end: (row) => row.end,
    "ended at": (row) => row.endedAt,
    reason: (row) => row.reason,
    active: (row) => row.active,
  },
};

/** ledgerLinesCSV is the table of the ledger. It is no evidence: `kubectl acp ledger export` writes lines that can be verified. */
export const ledgerLinesCSV: CsvTable<LedgerLine> = {
  file: "ledger",
  columns: {
    line: (row) => row.seq,
    at: (row) => row.at,
    by: (row) => person(row.actor),
    action: (row) => row.action,
    text: (row) => row.message?.text,
    object: (row) => row.object,
    details: (row) => Object.entries(row.details ?? {}).map(([key, value]) => `${key}=${value}`),
    hash: (row) => row.hash,
  },
};

/** findingsCSV is the table of findings. */
export const findingsCSV: CsvTable<Finding> = {
  file: "findings",
  columns: {
    kind: (row) => row.kind,
    severity: (row) => row.severity,
    member: (row) => row.member,
    resource: (row) => row.resource?.name,
    policy: (row) => row.policy,
    statement: (row) => row.sid,
    object: (row) => row.object,
    count: (row) => row.count,
    message: (row) => row.message.text,
    since: (row) => row.since,
  },
};

/** policiesCSV is the table of AccessControlPolicies. */
export const policiesCSV: CsvTable<PolicySummary> = {
  file: "access-policies",
  columns: {
    policy: (row) => row.name,
    origin: (row) => row.origin.kind,
    resources: (row) => names(row.resources),
    "number of resources": (row) => row.resourcesTotal,
    "number of subjects": (row) => row.subjects,
    statements: (row) => row.statements,
    accepted: (row) => row.accepted,
    realized: (row) => row.realized,
    issues: (row) => Object.entries(row.issues).map(([kind, count]) => `${kind}: ${count}`),
    message: (row) => row.message?.text,
    created: (row) => row.createdAt,
  },
};

/** statementsCSV is the table of the statements of a policy. */
export const statementsCSV = (policy: string, lastUse: (sid: string) => Use): CsvTable<PolicyStatement> => ({
  file: `statements-${policy}`,
  columns: {
    statement: (row) => row.sid,
    effect: (row) => row.effect,
    subjects: (row) => names(row.subjects),
    actions: (row) => row.actions,
    resources: (row) => names(row.resources),
    from: (row) => row.notBefore,
    until: (row) => row.notAfter,
    hours: (row) => row.hours && hoursText(row.hours, "en"),
    "last used": (row) => lastUsed(lastUse(row.sid)),
    ticket: (row) => row.ticket,
    reason: (row) => row.reason,
    issues: (row) => row.issues.map(({ kind }) => kind),
  },
});

/** classesCSV is the table of classes. */
export const classesCSV: CsvTable<ClassInfo> = {
  file: "classes",
  columns: { kind: (row) => row.kind, name: (row) => row.name, pattern: (row) => row.pattern, "label key": (row) => row.labelKey, objects: (row) => row.members, accepted: (row) => row.accepted, message: (row) => row.message?.text },
};

/** membersCSV is the table of the fleet. */
export const membersCSV: CsvTable<Member> = {
  file: "members",
  columns: {
    member: (row) => row.name,
    state: (row) => row.state,
    since: (row) => row.since,
    message: (row) => row.message?.text,
    engine: (row) => row.engine,
    kubernetes: (row) => row.kubernetesVersion,
    cilium: (row) => row.ciliumVersion,
    istio: (row) => row.istioVersion,
    guard: (row) => row.guard,
    "identities used": (row) => row.identities?.used,
    objects: (row) => row.objects?.managed,
    "revisions behind": (row) => row.behind,
    "waiting for waves": (row) => row.waves?.waiting,
    "waves halted": (row) => row.waves?.halted,
    nodes: (row) => row.nodes?.total,
    "nodes reporting": (row) => row.nodes?.reporting,
    "findings that stop": (row) => row.stops,
    "findings that fail": (row) => row.fails,
    "findings that warn": (row) => row.warns,
    observed: (row) => row.observedAt,
  },
};

/** reviewsCSV is the table of access reviews. */
export const reviewsCSV: CsvTable<AccessReview> = {
  file: "access-reviews",
  columns: {
    review: (row) => row.id,
    name: (row) => row.name,
    state: (row) => row.state,
    "created by": (row) => person(row.createdBy),
    created: (row) => row.createdAt,
    deadline: (row) => row.deadline,
    silence: (row) => row.silence,
    closed: (row) => row.closedAt,
    ended: (row) => row.endedAt,
    "end reason": (row) => row.endReason,
  },
};

/** reviewLinesCSV is the table of the lines of a review that the reader sees; the report of a review contains more. */
export const reviewLinesCSV: CsvTable<ReviewLine> = {
  file: "access-review-lines",
  columns: {
    review: (row) => row.review,
    line: (row) => row.line,
    application: (row) => row.application.name,
    "application title": (row) => row.application.title,
    resource: (row) => row.resource.name,
    "resource title": (row) => row.resource.title,
    actions: (row) => row.actions,
    since: (row) => row.since,
    end: (row) => row.end,
    ticket: (row) => row.ticket,
    "last used": (row) => row.evidence.lastUsed,
    connections: (row) => row.evidence.count,
    days: (row) => row.evidence.days,
    watched: (row) => row.evidence.watched,
    recommendation: (row) => row.recommendation,
    reviewers: (row) => people(row.reviewers),
    state: (row) => row.state,
    decision: (row) => row.decision,
    "decided by": (row) => person(row.decidedBy),
    "decided at": (row) => row.decidedAt,
    comment: (row) => row.comment,
  },
};

/** undeliveredCSV is the table of notifications that could not be delivered. */
export const undeliveredCSV: CsvTable<Undelivered> = {
  file: "undelivered-notifications",
  columns: {
    kind: (row) => row.kind,
    ticket: (row) => row.ticket,
    to: (row) => person(row.person),
    channel: (row) => row.channel,
    problem: (row) => row.problem,
    attempts: (row) => row.attempts,
    created: (row) => row.at,
    "given up": (row) => row.givenUpAt,
  },
};

/** proposalCSV is the table of the statements that the observed traffic needs. */
export const proposalCSV: CsvTable<ProposalLine> = {
  file: "proposal",
  columns: {
    subject: (row) => row.subject.name,
    "subject title": (row) => row.subject.title,
    owners: (row) => people(row.owners),
    action: (row) => row.action,
    state: (row) => row.state,
    "new since the last review": (row) => row.newSinceReview,
    ...seen<ProposalLine>(),
    "owners notified": (row) => row.notice?.at,
    "notified by": (row) => person(row.notice?.by),
    "notice reason": (row) => row.notice?.reason,
  },
};

/** unattributedCSV is the table of sources without a name. */
export const unattributedCSV = (about: string): CsvTable<UnattributedLine> => ({
  file: `unnamed-sources-${about}`,
  columns: { source: (row) => row.source, ports: (row) => row.ports, "new since the last review": (row) => row.newSinceReview, ...seen<UnattributedLine>() },
});

/** unknownPortsCSV is the table of ports that no action names. */
export const unknownPortsCSV = (about: string): CsvTable<UnknownPortLine> => ({
  file: `unknown-ports-${about}`,
  columns: { port: (row) => row.port, protocol: (row) => row.protocol, source: (row) => row.source, "new since the last review": (row) => row.newSinceReview, ...seen<UnknownPortLine>() },
});

/** packagesCSV is the table of access packages. */
export const packagesCSV: CsvTable<PackageSummary> = {
  file: "access-packages",
  columns: {
    package: (row) => row.name,
    title: (row) => row.title,
    description: (row) => row.description,
    team: (row) => `${row.team.displayName} (${row.team.id})`,
    chain: (row) => row.chain,
    resources: (row) => row.resources,
    version: (row) => row.version,
    published: (row) => row.publishedAt,
    archived: (row) => row.archived,
  },
};

/** packageHoldersCSV is the table of the applications that hold access by a package. */
export const packageHoldersCSV = (name: string): CsvTable<PackageHolder> => ({
  file: `package-holders-${name}`,
  columns: { application: (row) => row.application.name, title: (row) => row.application.title, version: (row) => row.version, accesses: (row) => row.items, tickets: (row) => row.tickets, ends: (row) => row.expiresAt },
});

/** packageResourcesCSV is the table of the resources of a package. */
export const packageResourcesCSV = (name: string): CsvTable<AccessPackage["resources"][number]> => ({
  file: `package-${name}`,
  columns: { resource: (row) => row.resource.name, title: (row) => row.resource.title, actions: (row) => row.actions, owners: (row) => people(row.owners) },
});

/** packageVersionsCSV is the table of the versions of a package. */
export const packageVersionsCSV = (name: string): CsvTable<AccessPackage["versions"][number]> => ({
  file: `package-versions-${name}`,
  columns: { version: (row) => row.number, "published by": (row) => person(row.publishedBy), published: (row) => row.publishedAt, ticket: (row) => row.ticket, digest: (row) => row.digest },
});

/** protectionCSV is the table of the protection of a resource by member. */
export const protectionCSV: CsvTable<ClusterState> = {
  file: "protection",
  columns: {
    member: (row) => row.cluster,
    state: (row) => row.state,
    mode: (row) => row.mode,
    "wanted revision": (row) => row.desiredRevision,
    "observed revision": (row) => row.observedRevision,
    since: (row) => row.since,
    message: (row) => row.message?.text,
  },
};

/** memberFindingsCSV is the table of the findings of a member. */
export const memberFindingsCSV: CsvTable<MemberFinding> = {
  file: "member-findings",
  columns: { severity: (row) => row.severity, code: (row) => row.code, object: (row) => row.object, message: (row) => row.message.text },
};

/** memberLabelsCSV is the table of the labels of a member's identities. */
export const memberLabelsCSV = (member: string): CsvTable<{ key: string; values: number }> => ({
  file: `labels-${member}`,
  columns: { label: (row) => row.key, values: (row) => row.values },
});

/** memberUnitsCSV is the table of what a member does not have as it should. */
export const memberUnitsCSV: CsvTable<MemberUnit> = {
  file: "member-units",
  columns: {
    resource: (row) => row.resource.name,
    title: (row) => row.resource.title,
    state: (row) => row.state.state,
    "wanted revision": (row) => row.state.desiredRevision,
    "observed revision": (row) => row.state.observedRevision,
    message: (row) => row.state.message?.text,
    since: (row) => row.state.since,
  },
};

/** impactCSV is a table of the connections that a change would affect. */
export const impactCSV = (name: string): CsvTable<ImpactLine> => ({
  file: `impact-${name}`,
  columns: {
    ...ends<ImpactLine>(),
    owners: (row) => people(row.owners),
    action: (row) => row.action,
    port: (row) => row.port,
    protocol: (row) => row.protocol,
    member: (row) => row.cluster,
    connections: (row) => row.count,
    before: (row) => row.before,
    after: (row) => row.after,
    "first seen": (row) => row.firstSeen,
    "last seen": (row) => row.lastSeen,
  },
});

/** uncertainCSV is the table of the periods about which a replay is not certain. */
export const uncertainCSV: CsvTable<Impact["uncertain"][number]> = {
  file: "impact-uncertain",
  columns: { member: (row) => row.cluster, from: (row) => row.from, to: (row) => row.to, reason: (row) => row.reason.text },
};

/** deniedCSV is the table of refused connections on the home page. */
export const deniedCSV: CsvTable<DeniedConnection> = {
  file: "refused-connections",
  columns: {
    application: (row) => row.application.name,
    "application title": (row) => row.application.title,
    resource: (row) => row.resource.name,
    "resource title": (row) => row.resource.title,
    action: (row) => row.action,
    port: (row) => row.port,
    protocol: (row) => row.protocol,
    decision: (row) => row.decision,
    connections: (row) => row.count,
    "last seen": (row) => row.lastSeen,
    ticket: (row) => row.ticket,
  },
};

/** expiringCSV is the table of accesses that end soon. */
export const expiringCSV: CsvTable<{ ticket: Ticket; item: TicketItem; asked: string | undefined; use: Use }> = {
  file: "expiring-access",
  columns: { ticket: ({ ticket }) => ticket.id, item: ({ item }) => itemText(item), actions: ({ item }) => item.actions, ends: ({ item }) => item.expiresAt, "last used": ({ use }) => lastUsed(use), reason: ({ ticket }) => ticket.reason, "extension requested in": ({ asked }) => asked },
};

/** ticketItemsCSV is the table of the items of a ticket. */
export const ticketItemsCSV = (ticket: string): CsvTable<TicketItem> => ({
  file: `items-${ticket}`,
  columns: {
    position: (row) => row.position,
    item: itemText,
    state: (row) => row.state,
    actions: (row) => row.actions,
    workload: (row) => row.workload?.id,
    ends: (row) => row.expiresAt,
    message: (row) => row.message?.text,
  },
});

/** syncChangesCSV is the table of what a sync would change. */
export const syncChangesCSV = (source: string): CsvTable<SyncChange> => ({
  file: `sync-${source}`,
  columns: {
    change: (row) => row.verb,
    kind: (row) => row.kind,
    id: (row) => row.id,
    title: (row) => row.title,
    fields: (row) => row.fields?.map(({ field, before, after }) => `${field}: ${before} → ${after}`),
    consequences: (row) => row.consequences?.map(({ text }) => text),
  },
});

/** sourcesCSV is the table of the sources of the catalog. */
export const sourcesCSV: CsvTable<CatalogSource> = {
  file: "catalog-sources",
  columns: { source: (row) => row.id, kind: (row) => row.kind, location: (row) => row.location, entities: (row) => row.entities, gone: (row) => row.gone, "last sync": (row) => row.lastSync },
};

/** downgradesCSV is the table of active downgrades. */
export const downgradesCSV: CsvTable<ActiveDowngrade> = {
  file: "downgrades",
  columns: { scope: (row) => row.scope, class: (row) => row.class, resources: (row) => row.resources, effective: (row) => row.effective, until: (row) => row.until, reason: (row) => row.reason, by: (row) => person(row.by) },
};

/** downgradeFailuresCSV is the table of the resources that a downgrade could not switch. */
export const downgradeFailuresCSV: CsvTable<DowngradeRun["failed"][number]> = {
  file: "downgrade-failures",
  columns: { resource: (row) => row.resource.name, title: (row) => row.resource.title, message: (row) => row.message.text },
};

/** seriesCSV is the table of the connections over time, with a column for each decision. */
export const seriesCSV = (decisions: readonly Decision[]): CsvTable<Partial<Record<Decision, number>> & { start: number }> => ({
  file: "connections-over-time",
  columns: { start: (row) => new Date(row.start).toISOString(), ...Object.fromEntries(decisions.map((decision) => [decision, (row: Partial<Record<Decision, number>>) => row[decision] ?? 0])) },
});

/** tokensCSV is the table of the reader's tokens, without their secrets. */
export const tokensCSV: CsvTable<Token> = {
  file: "tokens",
  columns: { id: (row) => row.id, name: (row) => row.name, scopes: (row) => row.scopes, created: (row) => row.createdAt, expires: (row) => row.expiresAt, "last used": (row) => row.lastUsedAt },
};

/** sessionsCSV is the table of the reader's sessions. */
export const sessionsCSV: CsvTable<SessionInfo> = {
  file: "sessions",
  columns: { browser: (row) => row.userAgent, current: (row) => row.current, "signed in": (row) => row.createdAt, ends: (row) => row.expiresAt },
};

/** actionsCSV is the table of the actions of a resource. */
export const actionsCSV = (resource: string): CsvTable<Resource["actions"][number]> => ({
  file: `actions-${resource}`,
  columns: { action: (row) => row.name, ports: (row) => row.ports },
});
