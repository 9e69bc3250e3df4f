/** Tables of connections, as files. */
import type { Connection, Decision, DeniedConnection, FlowLoss, RawFlow } from "../../api/types";
import type { CsvTable } from "../csv";
import type { FoldedConnection } from "../folded-connections";
import { ends } from "./cells";

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

/** seriesCSV is the table of the connections over time, with a column for each decision. */
export const seriesCSV = (decisions: readonly Decision[]): CsvTable<Partial<Record<Decision, number>> & { start: number }> => ({
  file: "connections-over-time",
  columns: { start: (row) => new Date(row.start).toISOString(), ...Object.fromEntries(decisions.map((decision) => [decision, (row: Partial<Record<Decision, number>>) => row[decision] ?? 0])) },
});
