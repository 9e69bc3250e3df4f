/** Tables of statements and of what they allow, as files. */
import type { Access, AccessEdge, CatalogRef, PolicyStatement, PolicySummary, Unused, Use } from "../../api/types";
import type { CsvTable } from "../csv";
import { hoursText } from "../hours";
import { clusters, ends, lastUsed, names, people } from "./cells";

/** titles returns the titles of catalog entries. */
const titles = (refs: readonly CatalogRef[] | undefined): string[] => (refs ?? []).map(({ title }) => title);

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
