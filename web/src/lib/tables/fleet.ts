/** Tables of members and their findings, as files. */
import type { ClusterState, Finding, Member, MemberFinding, MemberUnit } from "../../api/types";
import type { CsvTable } from "../csv";

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

/** memberUnitsCSV is the table of the units that a member does not have in the wanted state. */
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
