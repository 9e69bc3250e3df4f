import type { CatalogRef } from "../api/types";
import type { Window } from "./flow-filter";

/** FlowSelection selects connections: those between two names, or those that a statement decided. */
export interface FlowSelection {
  subject?: CatalogRef | undefined;
  resource?: CatalogRef | undefined;
  policy?: string | undefined;
  sid?: string | undefined;
}

/** flowWindow is the window of the linked page: the longest, because access may be used rarely. */
const flowWindow: Window = "31d";

/**
 * flowsPath returns the path of the selected connections in the flow explorer. It is undefined if an end is not in the catalog, because
 * the explorer would then show more than what is selected.
 */
export function flowsPath({ subject, resource, policy, sid }: FlowSelection): string | undefined {
  if ((subject && !subject.id) || (resource && !resource.id)) return undefined;
  const chosen = Object.entries({ subject: subject?.id, resource: resource?.id, policy, sid }).filter((each): each is [string, string] => Boolean(each[1]));
  if (chosen.length === 0) return undefined;
  return `/flows?${new URLSearchParams([...chosen, ["window", flowWindow]]).toString()}`;
}
