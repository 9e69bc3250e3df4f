import type { CatalogRef, TicketItem, TicketKind } from "../api/types";
import type { Window } from "./flow-filter";

/** FlowSelection selects connections: those between two names, or those that a statement decided. */
export interface FlowSelection {
  subject?: CatalogRef | undefined;
  resource?: CatalogRef | undefined;
  /** Actions of which the connection is one. A wildcard selects all actions, because the explorer compares whole names. */
  actions?: string[] | undefined;
  policy?: string | undefined;
  sid?: string | undefined;
}

/** flowWindow is the window of the linked page: the longest, because access may be used rarely. */
const flowWindow: Window = "31d";

/**
 * flowsPath returns the path of the selected connections in the flow explorer. It is undefined if an end is not in the catalog, because
 * the explorer would then show more than what is selected.
 */
export function flowsPath({ subject, resource, actions = [], policy, sid }: FlowSelection): string | undefined {
  if ((subject && !subject.id) || (resource && !resource.id)) return undefined;
  const chosen = Object.entries({ subject: subject?.id, resource: resource?.id, policy, sid }).filter((each): each is [string, string] => Boolean(each[1]));
  if (chosen.length === 0) return undefined;
  return path(chosen, actions);
}

/** statementPath returns the path of a statement on the page of its policy, which the security team and auditors may see. */
export const statementPath = (policy: string, sid: string): string => `/access-policies/${encodeURIComponent(policy)}?${new URLSearchParams({ sid }).toString()}`;

/** longestText is the length of the text that the server accepts. */
const longestText = 200;
/** mostValues is the number of values of one filter that the server accepts. */
const mostValues = 50;

function path(chosen: [string, string][], actions: string[]): string {
  const exact = actions.some((action) => action.includes("*")) || actions.length > mostValues ? [] : actions.map((action): [string, string] => ["action", action]);
  return `/flows?${new URLSearchParams([...chosen, ...exact, ["window", flowWindow]]).toString()}`;
}

/** written contains the states of an item whose statement is, or was, in its policy, so that connections may name it. */
const written: readonly TicketItem["state"][] = ["applying", "effective", "failed", "revoking", "revoked", "expired"];

/** isExact reports whether a name of a statement selects a single application or resource: it is no wildcard, and no address range. */
const isExact = (name: string): boolean => !name.includes("*") && !name.includes(":cidr:");

/**
 * itemFlowsPath returns the path of the connections that an item of a ticket is about. Those of a statement are the ones that it decided or,
 * before it is written, those between its names; those of a class are found by the beginning of the names that it covers. The path is
 * undefined if no filter selects the connections.
 */
export function itemFlowsPath({ application, resource, actions = [], scope, state, policy, sid, workload }: TicketItem, kind: TicketKind, pattern?: string): string | undefined {
  if (kind === "class") {
    const [stem = "", ...rest] = (pattern ?? "").split("*");
    return stem === "" || rest.join("") !== "" || stem.length > longestText ? undefined : path([["q", stem]], []);
  }
  if (scope) {
    if (policy && sid && written.includes(state)) return flowsPath({ policy, sid });
    if (![...scope.subjects, ...scope.resources].every(isExact)) return undefined;
    return path([...scope.subjects.map((name): [string, string] => ["subject", name]), ...scope.resources.map((name): [string, string] => ["resource", name])], actions);
  }
  if (kind === "workload" || workload) return flowsPath({ subject: application });
  return flowsPath({ subject: application, resource, actions });
}
