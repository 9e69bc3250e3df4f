/** The rules of a delegation; the server checks them again. Pure. */
import type { Delegation } from "../api/types";
import { instantOf } from "./zone";

/** DelegationForm contains the values of the form for a delegation. */
export interface DelegationForm {
  to: string;
  /** Wall times in the person's zone. */
  start: string;
  end: string;
  reason: string;
}

/** isDelegationForm reports whether a stored value has the shape of the form. */
export function isDelegationForm(value: unknown): value is DelegationForm {
  if (typeof value !== "object" || value === null) return false;
  const form = value as Record<string, unknown>;
  return (["to", "start", "end", "reason"] as const).every((name) => typeof form[name] === "string");
}

/** DelegationErrors contains an error code for each field that is wrong. */
export interface DelegationErrors {
  to?: "person";
  start?: "start";
  end?: "end" | "order" | "long" | "past";
  reason?: "reason";
}

const longest = 90 * 86_400_000;

/** delegationErrors returns the errors of the form. The times are in the zone. */
export function delegationErrors({ to, start, end, reason }: DelegationForm, zone: string, now: Date): DelegationErrors {
  const errors: DelegationErrors = {};
  if (to === "") errors.to = "person";
  const [from, until] = [instantOf(start, zone), instantOf(end, zone)];
  if (!from) errors.start = "start";
  if (!until) errors.end = "end";
  else if (until <= now) errors.end = "past";
  else if (from && until <= from) errors.end = "order";
  // A beginning in the past counts as now.
  else if (from && until.getTime() - Math.max(from.getTime(), now.getTime()) > longest) errors.end = "long";
  if (reason.trim() === "") errors.reason = "reason";
  return errors;
}

/** DelegationState is the state of a delegation: `ended` by a person, or `over` when its time has passed. */
export type DelegationState = "active" | "planned" | "ended" | "over";

/** stateOf returns the state of a delegation. */
export function stateOf({ active, endedAt, start }: Pick<Delegation, "active" | "endedAt" | "start">, now: Date): DelegationState {
  if (active) return "active";
  if (endedAt) return "ended";
  return new Date(start) > now ? "planned" : "over";
}
