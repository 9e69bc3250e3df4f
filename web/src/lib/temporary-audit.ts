/** How long a temporary audit lasts. Pure; the server checks it again. */
import { secondsPerDay, secondsPerHour } from "./time";

export const auditPresets = { "1h": secondsPerHour, "4h": 4 * secondsPerHour, "1d": secondsPerDay } as const;
export type AuditPreset = keyof typeof auditPresets;
export type AuditChoice = AuditPreset | "custom";
export const auditChoices = [...(Object.keys(auditPresets) as AuditPreset[]), "custom"] as const;

/** From api/openapi.yaml: at most this long at a time. */
const longest = 7 * secondsPerDay;

export interface AuditEnd {
  choice: AuditChoice;
  /** The value of the field for a custom end. */
  at: Date | undefined;
}

export function auditEnd({ choice, at }: AuditEnd, now: number): Date | undefined {
  return choice === "custom" ? at : new Date(now + auditPresets[choice] * 1_000);
}

/** `missing`: none was chosen. `past`: it would have ended already. `long`: longer than is allowed at a time. */
export function auditEndError(end: Date | undefined, now: number): "missing" | "past" | "long" | undefined {
  if (end === undefined || Number.isNaN(end.getTime())) return "missing";
  if (end.getTime() <= now) return "past";
  return end.getTime() > now + longest * 1_000 ? "long" : undefined;
}

/** `1:04:09`, what is left until an instant; never less than nothing. */
export function timeLeft(until: string, now: number): string {
  const seconds = Math.max(0, Math.ceil((Date.parse(until) - now) / 1_000));
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  return [hours, ...[minutes, rest].map((each) => String(each).padStart(2, "0"))].join(":");
}
