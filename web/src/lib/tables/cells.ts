/**
 * Cells and columns that several tables have. An end of a connection or statement has its full name and its title, a person their id and
 * name, and a time is in UTC. Messages are in English.
 */
import type { CatalogRef, ClusterState, MemberCounts, Person, SeenEvidence, Use } from "../../api/types";

/** person returns the name of a person with their id, or the id alone if they have no name. */
export const person = (one: Person | undefined): string | undefined => one && (one.displayName === one.id ? one.id : `${one.displayName} (${one.id})`);

/** people returns the names of people with their ids. */
export const people = (list: readonly { id: string; displayName: string }[] | undefined): string[] => (list ?? []).map((each) => `${each.displayName} (${each.id})`);

/** names returns the full names of catalog entries. */
export const names = (refs: readonly CatalogRef[] | undefined): string[] => (refs ?? []).map(({ name, title }) => name || title);

/** clusters returns the members with their states. Members that the server counts and does not list are named as a number. */
export function clusters(list: readonly ClusterState[] | undefined, counts: MemberCounts | undefined): string[] {
  const more = counts === undefined ? 0 : counts.total - counts.listed;
  return [...(list ?? []).map(({ cluster, state }) => `${cluster}: ${state}`), ...(more > 0 ? [`${more} more members`] : [])];
}

/** ends returns the columns of the two ends of a connection or statement. */
export const ends = <Row extends { subject: CatalogRef; resource: CatalogRef }>() => ({
  subject: (row: Row) => row.subject.name,
  "subject title": (row: Row) => row.subject.title,
  resource: (row: Row) => row.resource.name,
  "resource title": (row: Row) => row.resource.title,
});

/** seen returns the columns with the observed connections of a client. */
export const seen = <Row extends { evidence: SeenEvidence }>() => ({
  connections: (row: Row) => row.evidence.count,
  "first seen": (row: Row) => row.evidence.firstSeen,
  "last seen": (row: Row) => row.evidence.lastSeen,
  days: (row: Row) => row.evidence.days,
  members: (row: Row) => row.evidence.clusters,
});

/** lastUsed returns when an access was last used, "not used" if it is known that it was not, and otherwise "unknown". */
export const lastUsed = (use: Use): string => use?.lastUsed ?? (use?.state === "unused" ? "not used" : "unknown");
