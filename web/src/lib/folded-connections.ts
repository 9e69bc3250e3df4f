/**
 * Joins connections to one row per application, resource and action (or port). The store has one record for each cluster, path between
 * clusters and verdict. Pure.
 */
import type { CatalogRef, Connection, Decision } from "../api/types";

/** ClusterShare is the part of a folded connection that arrived in one cluster. */
export interface ClusterShare {
  cluster: string;
  count: number;
  lastSeen: string;
  /** The clusters from which the connections came, which may include this one. */
  from: string[];
}

/** FoldedConnection is all connections of one application, resource and action (or port). */
export interface FoldedConnection {
  key: string;
  subject: CatalogRef;
  resource: CatalogRef;
  action: string | undefined;
  /** `6379/TCP`, each once, in order. */
  ports: string[];
  /** The decisions without duplicates; a deny by a statement comes before a default deny. */
  decisions: Decision[];
  verdicts: Connection["verdict"][];
  /** letThrough is the number of the refused connections that the dataplane still let through. */
  letThrough: number;
  count: number;
  lastSeen: string;
  clusters: ClusterShare[];
  /** The statement that determined the decision; undefined if there is none. */
  sid: string | undefined;
  policy: string | undefined;
  ticket: string | undefined;
}

/** isRefused reports whether the decision refuses the connection. */
export const isRefused = (decision: Decision): boolean => decision === "denied" || decision === "default-denied";

const newer = (a: string, b: string): string => (Date.parse(a) >= Date.parse(b) ? a : b);

function addTo<T>(list: T[], value: T) {
  if (!list.includes(value)) list.push(value);
}

const endOf = (ref: CatalogRef): string => ref.name || ref.title;

/** keyOf returns the key of a connection's row. All refusals form one group; other connections are grouped by their decision. */
function keyOf(c: Connection): string {
  const decided = isRefused(c.decision) ? "refused" : [c.decision, c.policy, c.sid].join("/");
  return [endOf(c.subject), endOf(c.resource), c.action ?? `${c.port}/${c.protocol}`, decided].join("|");
}

function addShare(row: FoldedConnection, c: Connection) {
  let share = row.clusters.find((each) => each.cluster === c.cluster);
  if (!share) {
    share = { cluster: c.cluster, count: 0, lastSeen: c.lastSeen, from: [] };
    row.clusters.push(share);
  }
  share.count += c.count;
  share.lastSeen = newer(share.lastSeen, c.lastSeen);
  addTo(share.from, c.sourceCluster ?? c.cluster);
}

const minute = (row: FoldedConnection) => Math.floor(Date.parse(row.lastSeen) / 60_000);

/** byUse sorts the newest first, by the minute, so that busy rows do not change places at every update; then by whether access can be requested. */
function byUse(a: FoldedConnection, b: FoldedConnection): number {
  return minute(b) - minute(a) || Number(b.action !== undefined) - Number(a.action !== undefined) || b.count - a.count || a.key.localeCompare(b.key);
}

/** fold merges the connections of the same application, resource and action (or port), whatever their clusters and verdicts. */
export function fold(items: Connection[]): FoldedConnection[] {
  const rows = new Map<string, FoldedConnection>();
  for (const c of items) {
    const key = keyOf(c);
    let row = rows.get(key);
    if (!row) {
      row = {
        key, subject: c.subject, resource: c.resource, action: c.action, ports: [], decisions: [], verdicts: [], letThrough: 0,
        count: 0, lastSeen: c.lastSeen, clusters: [], sid: undefined, policy: undefined, ticket: undefined,
      };
      rows.set(key, row);
    }
    row.count += c.count;
    row.lastSeen = newer(row.lastSeen, c.lastSeen);
    addTo(row.ports, `${c.port}/${c.protocol}`);
    addTo(row.decisions, c.decision);
    addTo(row.verdicts, c.verdict);
    if (isRefused(c.decision) && c.verdict === "forwarded") row.letThrough += c.count;
    row.sid ??= c.sid;
    row.policy ??= c.policy;
    row.ticket ??= c.ticket;
    addShare(row, c);
  }
  const folded = [...rows.values()];
  for (const row of folded) {
    row.ports.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || a.localeCompare(b));
    row.decisions.sort((a, b) => Number(b === "denied") - Number(a === "denied"));
    row.clusters.sort((a, b) => a.cluster.localeCompare(b.cluster));
    for (const share of row.clusters) share.from.sort();
  }
  return folded.sort(byUse);
}
