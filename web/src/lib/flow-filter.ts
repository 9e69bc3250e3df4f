/** The flow explorer's filter: how it is read from the URL, and the query that it becomes. Pure; the current time is an argument. */
import type { Decision, Verdict } from "../api/types";
import { among } from "./use-filters";

/** windows maps the name of each window to its length in seconds. */
export const windows = { "1h": 3_600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "14d": 1_209_600, "31d": 2_678_400, "90d": 7_776_000, "365d": 31_536_000 } as const;
/** Window is the name of a window that ends now. */
export type Window = keyof typeof windows;
/** longWindowNames contains the names of all windows, the shortest first. Only queries about totals have those of more than `longestWindow`. */
export const longWindowNames = Object.keys(windows) as Window[];
/** longestWindow is the maximum length of a window of other queries, in seconds. */
export const longestWindow: number = windows["31d"];
/** windowNames contains the names of the windows that every query has, the shortest first. */
export const windowNames = longWindowNames.filter((name) => windows[name] <= longestWindow);
/** usualWindow is the window without a choice. */
export const usualWindow: Window = "24h";

/** decisions contains the policy verdicts in display order. */
export const decisions: Decision[] = ["allowed", "audited", "unmanaged", "default-denied", "denied"];
/** verdicts contains the dataplane verdicts in display order. */
export const verdicts: Verdict[] = ["forwarded", "audit", "dropped", "unknown"];

/** FlowFilter is the filter of the flow explorer. */
export interface FlowFilter {
  /** The window ends now, unless `since` is set. */
  window: Window;
  since: string | undefined;
  until: string | undefined;
  subject: string[];
  resource: string[];
  cluster: string[];
  decision: Decision[];
  verdict: Verdict[];
  action: string[];
  port: number[];
  policy: string | undefined;
  sid: string | undefined;
  unattributed: boolean;
  disagree: boolean;
  q: string | undefined;
}

/** filterKeys contains the URL parameters that narrow what is shown; the window is not among them. */
export const filterKeys = ["subject", "resource", "cluster", "decision", "verdict", "action", "port", "policy", "sid", "unattributed", "q"] as const;
type FilterKey = (typeof filterKeys)[number];

const texts = (search: URLSearchParams, key: string): string[] => [...new Set(search.getAll(key).map((each) => each.trim()))].filter((each) => each !== "");

function instant(value: string | null): string | undefined {
  const at = Date.parse(value ?? "");
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

const isPort = (port: number): boolean => Number.isInteger(port) && port >= 0 && port <= 65_535;

/** flowFilterOf reads the filter from the URL and ignores values that are not allowed. */
export function flowFilterOf(search: URLSearchParams, names: Window[] = windowNames): FlowFilter {
  const since = instant(search.get("since"));
  const until = instant(search.get("until"));
  return {
    window: among(search.getAll("window"), names)[0] ?? usualWindow,
    since,
    // An end that is not after the beginning is ignored.
    until: since !== undefined && until !== undefined && until <= since ? undefined : until,
    subject: texts(search, "subject"),
    resource: texts(search, "resource"),
    cluster: texts(search, "cluster"),
    decision: among(search.getAll("decision"), decisions),
    verdict: among(search.getAll("verdict"), verdicts),
    action: texts(search, "action"),
    port: texts(search, "port").map(Number).filter(isPort),
    policy: texts(search, "policy")[0],
    sid: texts(search, "sid")[0],
    unattributed: search.get("unattributed") === "true",
    disagree: search.get("disagree") === "true",
    q: texts(search, "q")[0],
  };
}

/** windowOf returns the window as instants. The end is absent if the window ends now. */
export function windowOf({ window, since, until }: Pick<FlowFilter, "window" | "since" | "until">, now: number): { since: string; until?: string } {
  const end = until === undefined ? now : Date.parse(until);
  return { since: since ?? new Date(end - windows[window] * 1_000).toISOString(), ...(until === undefined ? {} : { until }) };
}

type Span = Pick<FlowFilter, "window" | "since" | "until">;

/** isLong reports whether a window is longer than those that every query has. */
export function isLong(filter: Span, now: number): boolean {
  const { since, until } = windowOf(filter, now);
  return (until === undefined ? now : Date.parse(until)) - Date.parse(since) > longestWindow * 1_000;
}

/** shortened returns the window, or the last part of it that every query can have. */
export function shortened<F extends Span>(filter: F, now: number): F {
  if (!isLong(filter, now)) return filter;
  if (filter.until === undefined) return { ...filter, window: "31d", since: undefined };
  return { ...filter, since: new Date(Date.parse(filter.until) - longestWindow * 1_000).toISOString() };
}

/** flowQuery returns the parameters of the API without the window and the page. */
export function flowQuery({ subject, resource, cluster, decision, verdict, action, port, policy, sid, unattributed, disagree, q }: FlowFilter) {
  const some = <T>(list: T[]) => (list.length > 0 ? list : undefined);
  return {
    subject: some(subject),
    resource: some(resource),
    cluster: some(cluster),
    decision: some(decision),
    verdict: some(verdict),
    action: some(action),
    port: some(port),
    policy,
    sid,
    unattributed: unattributed || undefined,
    disagree: disagree || undefined,
    q,
  };
}

/** heldKeys contains the filters that no control of the filter bar shows. */
const heldKeys = ["subject", "resource", "action", "port", "policy", "sid"] as const satisfies readonly FilterKey[];

/** Held is one value of the filter, which is shown with a button that removes it. */
export interface Held {
  key: (typeof heldKeys)[number];
  value: string;
}

/** held returns the values of the filter that are shown with a button. */
export function held(filter: FlowFilter): Held[] {
  return heldKeys.flatMap((key) => [filter[key] ?? []].flat().map((value) => ({ key, value: String(value) })));
}

/** without returns the values of the parameter that remain when one of them is removed. */
export function without(search: URLSearchParams, { key, value }: Held): string[] {
  return search.getAll(key).filter((each) => each.trim() !== value && !(key === "port" && String(Number(each)) === value));
}

/** isFiltered reports whether the URL narrows what is shown. */
export const isFiltered = (search: URLSearchParams): boolean => filterKeys.some((key) => search.has(key));
