/** The choices for the duration of a temporary audit. Pure; the server checks the duration again. */
import { secondsPerDay, secondsPerHour } from "./time";

/** auditPresets maps the offered durations of a temporary audit to seconds. */
export const auditPresets = { "1h": secondsPerHour, "4h": 4 * secondsPerHour, "1d": secondsPerDay } as const;
/** AuditPreset is one of the offered durations. */
export type AuditPreset = keyof typeof auditPresets;
/** AuditChoice is one of the offered durations, or a custom end. */
export type AuditChoice = AuditPreset | "custom";
/** auditChoices contains all choices in display order. */
export const auditChoices = [...(Object.keys(auditPresets) as AuditPreset[]), "custom"] as const;

/** longest is the longest temporary audit in seconds, as in api/openapi.yaml. */
const longest = 7 * secondsPerDay;

/** AuditEndForm contains the values of the field for the end of a temporary audit or of a downgrade. */
export interface AuditEndForm {
  choice: AuditChoice;
  /** The wall time of a custom end in the person's zone. */
  wall: string;
}

/** AuditForm contains the values of the dialogs for a temporary audit and for a downgrade that are kept while the person logs in. */
export interface AuditForm extends AuditEndForm {
  reason: string;
}

/** isAuditForm reports whether a stored value has the shape of the form. */
export function isAuditForm(value: unknown): value is AuditForm {
  if (typeof value !== "object" || value === null) return false;
  const { choice, wall, reason } = value as Record<string, unknown>;
  return auditChoices.some((each) => each === choice) && typeof wall === "string" && typeof reason === "string";
}

/** AuditEnd is the value of the field for the end of a temporary audit. */
export interface AuditEnd {
  choice: AuditChoice;
  /** The value of the field for a custom end. */
  at: Date | undefined;
}

/** auditEnd returns the end as an instant. `now` is in milliseconds. */
export function auditEnd({ choice, at }: AuditEnd, now: number): Date | undefined {
  return choice === "custom" ? at : new Date(now + auditPresets[choice] * 1_000);
}

/**
 * auditEndError returns the error of an end: `missing` if none was chosen, `past` if it has passed already, `long` if it is later than is allowed at a
 * time.
 */
export function auditEndError(end: Date | undefined, now: number): "missing" | "past" | "long" | undefined {
  if (end === undefined || Number.isNaN(end.getTime())) return "missing";
  if (end.getTime() <= now) return "past";
  return end.getTime() > now + longest * 1_000 ? "long" : undefined;
}

/** timeLeft returns the time until an instant as `1:04:09`, and at least `0:00:00`. */
export function timeLeft(until: string, now: number): string {
  const seconds = Math.max(0, Math.ceil((Date.parse(until) - now) / 1_000));
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  return [hours, ...[minutes, rest].map((each) => String(each).padStart(2, "0"))].join(":");
}
