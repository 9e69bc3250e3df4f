/** Sorts and counts member states, because there can be hundreds of members. Pure. */
import type { ClusterState, MemberCounts } from "../api/types";

type State = ClusterState["state"];

/** clusterOrder contains the member states, the worst first. */
export const clusterOrder: State[] = ["Leaked", "Downgraded", "Unreachable", "Quarantined", "Drifted", "Overridden", "Pending", "Realized"];

/** worstFirst returns the members sorted by their state, the worst first, and then by name. Members without a state come last. */
export function worstFirst<T extends { cluster: string }>(members: T[], state: (member: T) => State | undefined): T[] {
  const rank = (member: T) => {
    const of = state(member);
    return of === undefined ? clusterOrder.length : clusterOrder.indexOf(of);
  };
  return [...members].sort((a, b) => rank(a) - rank(b) || a.cluster.localeCompare(b.cluster));
}

/** StateCount is the number of members in a state. */
export interface StateCount {
  state: State;
  count: number;
}

/** countStates counts members by state. The server's counts include members that are not listed. */
export function countStates(members: Pick<ClusterState, "state">[], counts?: MemberCounts): StateCount[] {
  const of = (state: State) => counts?.states?.[state] ?? (counts ? 0 : members.filter((member) => member.state === state).length);
  return clusterOrder.map((state) => ({ state, count: of(state) })).filter(({ count }) => count > 0);
}

/** unlisted returns the number of members that are in no list. */
export const unlisted = (counts: MemberCounts | undefined): number => (counts ? Math.max(counts.total - counts.listed, 0) : 0);
