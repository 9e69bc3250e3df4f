/** Sorts and counts member states, because there can be hundreds of members. Pure. */
import type { ClusterState, MemberCounts } from "../api/types";

type State = ClusterState["state"];

/** The worst first: what people look for. */
export const clusterOrder: State[] = ["Leaked", "Downgraded", "Unreachable", "Quarantined", "Drifted", "Overridden", "Pending", "Realized"];

export function worstFirst<T extends { cluster: string }>(members: T[], state: (member: T) => State | undefined): T[] {
  const rank = (member: T) => {
    const of = state(member);
    return of === undefined ? clusterOrder.length : clusterOrder.indexOf(of);
  };
  return [...members].sort((a, b) => rank(a) - rank(b) || a.cluster.localeCompare(b.cluster));
}

export interface StateCount {
  state: State;
  count: number;
}

/** countStates counts members by state. The server's counts include members that are not listed. */
export function countStates(members: Pick<ClusterState, "state">[], counts?: MemberCounts): StateCount[] {
  const of = (state: State) => counts?.states?.[state] ?? (counts ? 0 : members.filter((member) => member.state === state).length);
  return clusterOrder.map((state) => ({ state, count: of(state) })).filter(({ count }) => count > 0);
}

/** How many members are in no list. */
export const unlisted = (counts: MemberCounts | undefined): number => (counts ? Math.max(counts.total - counts.listed, 0) : 0);
