/** How much of the traffic of members was observed, by day and in total. Pure. */
import type { FlowCoverage } from "../api/types";
import { secondsPerDay } from "./time";

/** lossReasons contains the reasons for missing flows, as the API names them. */
export const lossReasons = ["dataplane-buffer", "agent-queue", "ring", "gap", "store", "unreadable", "unknown"] as const;

/** CoverageRow is the coverage of one member by day. */
export interface CoverageRow {
  cluster: string;
  /** Day -> what is known of it. */
  days: Map<string, FlowCoverage>;
}

/** byDay returns every day that any member has, the newest first, and one row per member. */
export function byDay(items: FlowCoverage[]): { days: string[]; rows: CoverageRow[] } {
  const days = [...new Set(items.map((each) => each.day))].sort().reverse();
  const rows = [...new Set(items.map((each) => each.cluster))].sort().map((cluster) => ({ cluster, days: new Map(items.filter((each) => each.cluster === cluster).map((each) => [each.day, each])) }));
  return { days, rows };
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

/** missing sums up what is missing in all members, or in some of them. */
export function missing(items: FlowCoverage[], clusters: string[] = []): { lost: number; gapSeconds: number; clusters: string[] } {
  const of = items.filter((each) => (clusters.length === 0 || clusters.includes(each.cluster)) && (each.lost > 0 || each.gapSeconds > 0));
  return {
    lost: of.reduce((sum, each) => sum + each.lost, 0),
    gapSeconds: of.reduce((sum, each) => sum + each.gapSeconds, 0),
    clusters: [...new Set(of.map((each) => each.cluster))].sort(),
  };
}
