/** The counts of a flow series for its chart and its table: one row per step, including steps without flows. Pure. */
import type { Decision, FlowSeries } from "../api/types";
import { decisions } from "./flow-filter";

/** Step is one step of a series: its start in milliseconds, and the number of connections by decision. */
export type Step = { start: number } & Partial<Record<Decision, number>>;

/** most is the maximum number of steps that are drawn; the server makes fewer. */
const most = 1_000;

/** stepsOf returns all steps of a series, including those without connections. */
export function stepsOf({ since, until, stepSeconds, points }: FlowSeries): Step[] {
  const length = stepSeconds * 1_000;
  const first = Date.parse(since);
  const count = Math.min(Math.ceil((Date.parse(until) - first) / length), most);
  if (!(count > 0)) return [];
  const steps = Array.from({ length: count }, (_, index): Step => ({ start: first + index * length }));
  for (const { start, decision, count: number } of points) {
    const step = steps[Math.floor((Date.parse(start) - first) / length)];
    if (step) step[decision] = (step[decision] ?? 0) + number;
  }
  return steps;
}

/** totalsOf returns the decisions that occur, in the order in which they are stacked, each with its total. */
export function totalsOf({ points }: Pick<FlowSeries, "points">): { decision: Decision; count: number }[] {
  return decisions.flatMap((decision) => {
    const count = points.reduce((sum, point) => (point.decision === decision ? sum + point.count : sum), 0);
    return count > 0 ? [{ decision, count }] : [];
  });
}
