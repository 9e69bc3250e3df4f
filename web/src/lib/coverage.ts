/** How much of the traffic of members was observed, by day and in total. Pure. */
import type { FlowCoverage, FlowCoverageList } from "../api/types";
import { longestWindow } from "./flow-filter";
import { secondsPerDay } from "./time";

/** lossReasons contains the reasons for missing flows, as the API names them. */
export const lossReasons = ["dataplane-buffer", "agent-queue", "ring", "gap", "store", "unreadable", "unknown"] as const;

/** CoverageRow is the coverage of one member by day. */
export interface CoverageRow {
  cluster: string;
  /** Day -> what is known of it. */
  days: Map<string, FlowCoverage>;
}

/** daysWithin returns the UTC days between two instants, the newest first. */
export function daysWithin(since: string, until: string): string[] {
  const length = secondsPerDay * 1_000;
  const days: string[] = [];
  for (let start = Math.floor(Date.parse(since) / length) * length; start < Date.parse(until); start += length) days.unshift(new Date(start).toISOString().slice(0, 10));
  return days;
}

/**
 * membersOf returns the chosen members, or all that are known. A member without any coverage is known by its newest flow. The store keeps that flow of removed
 * members too, so it counts only up to the length of the longest window before this one.
 */
function membersOf({ items, lastFlow, since }: FlowCoverageList, chosen: string[]): string[] {
  if (chosen.length > 0) return [...new Set(chosen)].sort();
  const earliest = Date.parse(since) - longestWindow * 1_000;
  const silent = Object.entries(lastFlow ?? {}).flatMap(([cluster, at]) => (Date.parse(at) >= earliest ? [cluster] : []));
  return [...new Set([...items.map((each) => each.cluster), ...silent])].sort();
}

/** byDay returns every day of the window, the newest first, and one row per member: the chosen members, or all that are known. */
export function byDay(list: FlowCoverageList, chosen: string[] = []): { days: string[]; rows: CoverageRow[] } {
  const rows = membersOf(list, chosen).map((cluster) => ({ cluster, days: new Map(list.items.filter((each) => each.cluster === cluster).map((each) => [each.day, each])) }));
  return { days: daysWithin(list.since, list.until), rows };
}

/** secondsWithin returns the seconds of a UTC day that lie between two instants. */
export function secondsWithin(day: string, since: string, until: string): number {
  const start = Date.parse(`${day}T00:00:00Z`);
  return Math.max(0, (Math.min(start + secondsPerDay * 1_000, Date.parse(until)) - Math.max(start, Date.parse(since))) / 1_000);
}

/** watchedShare returns the share of the day, within the window, in which flows were collected. */
export function watchedShare({ day, watchedSeconds, gapSeconds }: FlowCoverage, since: string, until: string): number {
  const whole = secondsWithin(day, since, until);
  return whole === 0 ? 0 : Math.min(1, Math.max(0, watchedSeconds - gapSeconds) / whole);
}

/** percent rounds down, so that only a full share is shown as 100. */
export const percent = (share: number): number => (share >= 1 ? 100 : Math.min(99, Math.floor(share * 100)));

/** Quality is the tone of a cell: how completely a member was watched. */
export type Quality = "ok" | "warn" | "bad" | "idle";

/** qualityOf returns the quality of a period, given the share of it that was watched and the number of flows that were lost. */
export function qualityOf(share: number, lost: number): Quality {
  if (share === 0) return "idle";
  if (share < 0.5) return "bad";
  return share < 0.95 || lost > 0 ? "warn" : "ok";
}

/** unwatchedAtLeast is the part of a day, in seconds, that counts as not watched: a collector resumes where it stopped after a restart. The portal's replay uses the same. */
const unwatchedAtLeast = 60;

/** unwatchedSeconds returns the time of the day, within the window, in which no flows of a member were collected. Without coverage that is all of it. */
export function unwatchedSeconds(known: FlowCoverage | undefined, day: string, since: string, until: string): number {
  const whole = secondsWithin(day, since, until);
  const lacks = Math.max(0, whole - (known ? Math.max(0, known.watchedSeconds - known.gapSeconds) : 0));
  return lacks >= unwatchedAtLeast ? lacks : Math.min(whole, known?.gapSeconds ?? 0);
}

/** Missing is what is missing in several members. */
export interface Missing {
  /** Whether any member is known. Otherwise nothing was watched, and what is missing is not known. */
  known: boolean;
  lost: number;
  /** The number of members of which some time was not watched, and the longest such time of one member in seconds. */
  unwatched: number;
  unwatchedSeconds: number;
  /** The members of which flows were lost or time was not watched. */
  clusters: string[];
}

const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);

/** missing sums up what is missing in all known members, or in the chosen ones. Time that was not watched is missing, as are members without coverage. */
export function missing(list: FlowCoverageList, chosen: string[] = []): Missing {
  const { days, rows } = byDay(list, chosen);
  const of = rows.map((row) => ({
    cluster: row.cluster,
    lost: sum([...row.days.values()].map((each) => each.lost)),
    unwatched: sum(days.map((day) => unwatchedSeconds(row.days.get(day), day, list.since, list.until))),
  }));
  return {
    known: rows.length > 0,
    lost: sum(of.map((each) => each.lost)),
    unwatched: of.filter((each) => each.unwatched > 0).length,
    unwatchedSeconds: Math.max(0, ...of.map((each) => each.unwatched)),
    clusters: of.flatMap((each) => (each.lost > 0 || each.unwatched > 0 ? [each.cluster] : [])),
  };
}
