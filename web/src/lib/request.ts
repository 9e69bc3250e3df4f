/** The request form's rules. Pure; the server checks them again. */
import type { NewTicket } from "../api/types";
import { secondsPerDay, secondsPerHour } from "./time";

export const durationChoices = ["1", "7", "30", "90", "revoked", "custom"] as const;
export type DurationChoice = (typeof durationChoices)[number];
export type CustomUnit = "hours" | "days";

export interface RequestForm {
  application: string;
  resource: string;
  actions: string[];
  duration: DurationChoice;
  customAmount: number | undefined;
  customUnit: CustomUnit;
  reason: string;
}

export type RequestField = "application" | "resource" | "actions" | "duration" | "reason";
export type RequestErrors = Partial<Record<RequestField, "missing" | "range" | "long">>;

/** From api/openapi.yaml, NewTicket. */
export const reasonLimit = 2_000;
const shortest = 300;
const longest = 31_622_400;

/** Undefined: until revoked. NaN: not a duration. */
export function durationSeconds(form: Pick<RequestForm, "duration" | "customAmount" | "customUnit">): number | undefined {
  if (form.duration === "revoked") return undefined;
  if (form.duration !== "custom") return Number(form.duration) * secondsPerDay;
  if (form.customAmount === undefined) return Number.NaN;
  return Math.round(form.customAmount * (form.customUnit === "days" ? secondsPerDay : secondsPerHour));
}

/** What is wrong with the access that is asked for; the reason comes later, so it is judged apart. */
function accessErrors(form: RequestForm): RequestErrors {
  const errors: RequestErrors = {};
  if (form.application === "") errors.application = "missing";
  if (form.resource === "") errors.resource = "missing";
  if (form.actions.length === 0) errors.actions = "missing";
  const seconds = durationSeconds(form);
  if (seconds !== undefined && !(seconds >= shortest && seconds <= longest)) errors.duration = "range";
  return errors;
}

export function validate(form: RequestForm): RequestErrors {
  const errors = accessErrors(form);
  const reason = form.reason.trim();
  if (reason === "") errors.reason = "missing";
  else if (reason.length > reasonLimit) errors.reason = "long";
  return errors;
}

export function toBody(form: RequestForm): NewTicket {
  const seconds = durationSeconds(form);
  return {
    items: [{ application: form.application, resource: form.resource, actions: form.actions }],
    reason: form.reason.trim(),
    ...(seconds === undefined ? {} : { durationSeconds: seconds }),
  };
}

/**
 * The request as far as a preview needs it, once it is complete. The reason changes nothing in what would
 * happen, so a fixed one is sent: typing it does not ask again.
 */
export function previewBody(form: RequestForm): NewTicket | undefined {
  if (Object.keys(accessErrors(form)).length > 0) return undefined;
  return { ...toBody(form), reason: "preview" };
}
