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

/** anyone is the subject that stands for every client. */
const anyone = "*";

/**
 * scopePath returns the path of the connections between the names of a statement that is not written yet. Exact names are values of the filters of
 * their side, and anyone is no filter. The text of the explorer finds one prefix, on either side, by the beginning of the names that it covers. Other
 * statements have no path, because the explorer would show more or less than what they are about:
 *
 * - Two prefixes, or a prefix beside exact names on the same side: there is one text, and it restricts the filters instead of adding to them.
 * - A range of addresses: sources outside the fleet are recorded by ranges of a fixed length, and by their names if they are registered, so neither a
 *   text nor a filter of names selects the sources in it. The facts of the ticket count these connections.
 */
function scopePath(subjects: string[], resources: string[], actions: string[]): string | undefined {
  const sides: Record<"subject" | "resource", string[]> = { subject: subjects.includes(anyone) ? [] : subjects, resource: resources };
  const chosen: [string, string][] = [];
  let text: string | undefined;
  for (const [side, names] of Object.entries(sides)) {
    const prefixes = names.filter((name) => name.endsWith("*"));
    if (names.some((name) => name.includes(":cidr:")) || names.length > mostValues) return undefined;
    if (prefixes.length === 0) {
      chosen.push(...names.map((name): [string, string] => [side, name]));
      continue;
    }
    if (text !== undefined || names.length > 1) return undefined;
    text = prefixes.join("").slice(0, -1);
    if (text === "" || text.length > longestText) return undefined;
  }
  if (text !== undefined) chosen.push(["q", text]);
  return path(chosen, actions);
}

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
    return scopePath(scope.subjects, scope.resources, actions);
  }
  if (kind === "workload" || workload) return flowsPath({ subject: application });
  return flowsPath({ subject: application, resource, actions });
}
