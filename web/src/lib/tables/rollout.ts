/** Tables of evidence before a change, and of downgrades, as files. */
import type { ActiveDowngrade, DowngradeRun, Impact, ImpactLine, ProposalLine, UnattributedLine, UnknownPortLine } from "../../api/types";
import type { CsvTable } from "../csv";
import { ends, people, person, seen } from "./cells";

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
