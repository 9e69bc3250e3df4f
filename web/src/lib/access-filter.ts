/** The access map's filter, level and selected node, as read from the URL. Pure. */
import type { AccessFilter } from "../api/fleet";
import type { FilterChange } from "./use-filters";
import { among } from "./use-filters";
import type { Focus, Level } from "./access-graph";
import { levels } from "./access-graph";
import { modes, originKinds } from "./governance-filters";

/** expiryDays contains the numbers of days within which an access can be filtered to expire. */
export const expiryDays = [1, 7, 14, 30, 90] as const;

/** filterNames contains the URL parameters that filter the map. */
export const filterNames = ["q", "subject", "resource", "team", "class", "mode", "effect", "origin", "expires", "broad"] as const;

/** filterOf reads the filter of the access map from the URL and ignores values that are not allowed. */
export function filterOf(search: URLSearchParams): AccessFilter {
  const text = (key: string) => search.get(key)?.trim() || undefined;
  const [mode, origin] = [among(search.getAll("mode"), modes), among(search.getAll("origin"), originKinds)];
  const days = expiryDays.find((each) => String(each) === search.get("expires"));
  const effect = search.get("effect") === "Deny" ? "Deny" : search.get("effect") === "Allow" ? "Allow" : undefined;
  const single = { q: text("q"), subject: text("subject"), resource: text("resource"), team: text("team"), class: text("class"), effect, expiresWithinDays: days, broad: search.get("broad") === "true" || undefined };
  return { ...Object.fromEntries(Object.entries(single).filter(([, value]) => value !== undefined)), ...(mode.length > 0 ? { mode } : {}), ...(origin.length > 0 ? { origin } : {}) };
}

/** levelOf reads the zoom level of the access map from the URL; without one it is the level of teams. */
export function levelOf(search: URLSearchParams): Level {
  return levels.find((each) => each === search.get("level")) ?? "team";
}

/** focusChange replaces the selected node by another one. */
export function focusChange(focus: Focus): FilterChange {
  return { subject: undefined, resource: undefined, team: undefined, ...focus };
}

/** focusIn reads the selected node of the access map from the URL. */
export function focusIn(search: URLSearchParams): Focus {
  const [subject, resource, team] = [search.get("subject"), search.get("resource"), search.get("team")];
  if (subject) return { subject };
  if (resource) return { resource };
  return team ? { team } : undefined;
}
