/** The request forms' rules. Pure; the server checks them again. */
import type { Mode, NewTicket, ObjectChange, TicketKind, WeeklyHours } from "../api/types";
import { hoursBody, hoursError } from "./hours";
import { secondsPerDay, secondsPerHour } from "./time";

/** durationChoices contains the durations that the form offers: days, until revoked, or a custom duration. */
export const durationChoices = ["1", "7", "30", "90", "revoked", "custom"] as const;
/** DurationChoice is one of the durations that the form offers. */
export type DurationChoice = (typeof durationChoices)[number];
/** CustomUnit is the unit of a custom duration. */
export type CustomUnit = "hours" | "days";

/** DurationValue is the value of the field for a duration. */
export interface DurationValue {
  duration: DurationChoice;
  customAmount: number | undefined;
  customUnit: CustomUnit;
}

/** usualDuration is the duration with which the form opens. */
export const usualDuration: DurationValue = { duration: "30", customAmount: 12, customUnit: "hours" };

/** textLimit is the maximum length of a text in characters, as in api/openapi.yaml. */
export const textLimit = 2_000;
/** basketLimit is the maximum number of items of a request, as in api/openapi.yaml. */
export const basketLimit = 50;
const shortest = 300;
const longest = 31_622_400;

/** durationSeconds returns the duration in seconds. It is undefined until revoked, and NaN if the value is not a duration. */
export function durationSeconds({ duration, customAmount, customUnit }: DurationValue): number | undefined {
  if (duration === "revoked") return undefined;
  if (duration !== "custom") return Number(duration) * secondsPerDay;
  if (customAmount === undefined) return Number.NaN;
  return Math.round(customAmount * (customUnit === "days" ? secondsPerDay : secondsPerHour));
}

/** durationError returns the error of a duration: `range` if it is never allowed, `cap` if it is longer than the approval policy allows. */
export function durationError(value: DurationValue, cap?: number): "range" | "cap" | undefined {
  const seconds = durationSeconds(value);
  if (seconds !== undefined && !(seconds >= shortest && seconds <= longest)) return "range";
  if (cap !== undefined && (seconds === undefined || seconds > cap)) return "cap";
  return undefined;
}

/** reasonError returns the error of a reason: `missing`, or `long` if it exceeds textLimit. */
export function reasonError(reason: string): "missing" | "long" | undefined {
  const text = reason.trim();
  if (text === "") return "missing";
  return text.length > textLimit ? "long" : undefined;
}

/** Wanted is one resource of the basket with its chosen actions. */
export interface Wanted {
  resource: string;
  actions: string[];
}

/** Pair is an application with a resource that it needs to reach: one item of a request for access. */
export interface Pair {
  application: string;
  resource: string;
}

/** isPair reports whether two pairs have the same application and the same resource. */
export const isPair = (a: Pair, b: Pair): boolean => a.application === b.application && a.resource === b.resource;

/** AccessRequest contains the values of the form for access: each application requests access to each resource of the basket. */
export interface AccessRequest {
  applications: string[];
  basket: Wanted[];
  /** The pairs that are not requested. Absent if there are none. */
  leftOut?: Pair[] | undefined;
  duration: DurationValue;
  /** Absent if the access is wanted at any hour. */
  hours?: WeeklyHours | undefined;
}

/** accessPairs returns the items of the request in their order: for each resource, each application, without the pairs that are left out. */
export function accessPairs({ applications, basket, leftOut = [] }: AccessRequest): (Wanted & Pair)[] {
  return basket.flatMap((wanted) => applications.map((application) => ({ ...wanted, application }))).filter((pair) => !leftOut.some((each) => isPair(each, pair)));
}

/** AccessErrors contains the errors of the form for access. */
export interface AccessErrors {
  application?: "missing";
  basket?: "missing";
  /** `none` if every pair is left out, `many` if there are more than basketLimit. */
  pairs?: "none" | "many";
  /** Resources of the basket without an action. */
  actions: string[];
  duration?: "range" | "cap";
  hours?: "incomplete";
}

/** pairsError returns the error of the number of items: `none` if every pair is left out, `many` if there are more than basketLimit. */
function pairsError(request: AccessRequest): AccessErrors["pairs"] {
  const count = accessPairs(request).length;
  if (count > basketLimit) return "many";
  return count === 0 && request.applications.length > 0 && request.basket.length > 0 ? "none" : undefined;
}

/** accessErrors returns the errors of the form for access. `cap` is the longest duration that the approval policy allows, in seconds. */
export function accessErrors(request: AccessRequest, cap?: number): AccessErrors {
  const { applications, basket, duration, hours } = request;
  const errors: AccessErrors = { actions: basket.filter(({ actions }) => actions.length === 0).map(({ resource }) => resource) };
  if (applications.length === 0) errors.application = "missing";
  if (basket.length === 0) errors.basket = "missing";
  const count = pairsError(request);
  if (count) errors.pairs = count;
  const wrong = durationError(duration, cap);
  if (wrong) errors.duration = wrong;
  if (hoursError(hours)) errors.hours = "incomplete";
  return errors;
}

/** isWrong reports whether there is an error. */
export const isWrong = ({ actions, ...rest }: AccessErrors): boolean => actions.length > 0 || Object.keys(rest).length > 0;

/** Draftable is a request without its reason. */
export type Draftable = Omit<NewTicket, "reason">;

/** accessBody returns the request for access. Its items are accessPairs. */
export function accessBody(request: AccessRequest): Draftable {
  const { duration, hours } = request;
  const seconds = durationSeconds(duration);
  const during = hours ? { hours: hoursBody(hours) } : {};
  return {
    items: accessPairs(request).map(({ application, resource, actions }) => ({ application, resource, actions, ...during })),
    ...(seconds === undefined ? {} : { durationSeconds: seconds }),
  };
}

/** withoutPair leaves one item out of a request: the resource, if only one application requests it, otherwise the pair. */
export function withoutPair<T extends { resource: string }>({ applications, basket, leftOut = [] }: { applications: string[]; basket: T[]; leftOut?: Pair[] | undefined }, pair: Pair): { basket: T[]; leftOut: Pair[] } {
  if (applications.length > 1) return { basket, leftOut: [...leftOut, pair] };
  return { basket: basket.filter(({ resource }) => resource !== pair.resource), leftOut: leftOut.filter(({ resource }) => resource !== pair.resource) };
}

/** atAnyHour returns a request without its hours: break-glass access begins at once. */
export const atAnyHour = (body: Draftable): Draftable => ({
  ...body,
  items: body.items.map((item) => {
    const whole = { ...item };
    delete whole.hours;
    return whole;
  }),
});

/** previewable returns the request without the resources whose actions are not chosen yet. */
export const previewable = <T extends AccessRequest>(request: T): T => ({ ...request, basket: request.basket.filter(({ actions }) => actions.length > 0) });

/**
 * accessPreview returns the part of the request that can be previewed, see previewable. Items of the answer are in the order of its accessPairs. It is
 * undefined while too little, or too much for one request, is entered.
 */
export function accessPreview(request: AccessRequest): Draftable | undefined {
  const part = previewable(request);
  const count = accessPairs(part).length;
  if (count === 0 || count > basketLimit || durationError(request.duration) || hoursError(request.hours)) return undefined;
  return accessBody(part);
}

/** ModeRequest contains the values of the form for a change of mode, an onboarding or an offboarding. */
export interface ModeRequest {
  kind: "mode" | "onboard" | "offboard";
  resource: string;
  mode: Mode | undefined;
  clusterModes: Record<string, Mode>;
  /** The reason to enforce without enough evidence; only the security team may do this. */
  override?: string | undefined;
}

/** enforces returns whether the request turns on Enforce in any member. */
export const enforces = ({ kind, mode, clusterModes }: Pick<ModeRequest, "kind" | "mode" | "clusterModes">): boolean =>
  kind !== "offboard" && (mode === "Enforce" || Object.values(clusterModes).includes("Enforce"));

/** modeBody returns the request for a change of mode, an onboarding or an offboarding. It is undefined while too little is entered. */
export function modeBody({ kind, resource, mode, clusterModes, override }: ModeRequest): Draftable | undefined {
  if (resource === "") return undefined;
  if (kind === "offboard") return { kind, items: [{ resource }] };
  if (mode === undefined) return undefined;
  // An exception with the same mode as the rule is left out.
  const exceptions = Object.fromEntries(Object.entries(clusterModes).filter(([, each]) => each !== mode));
  return {
    kind,
    items: [{ resource, mode, ...(Object.keys(exceptions).length > 0 ? { clusterModes: exceptions } : {}) }],
    ...(override?.trim() && enforces({ kind, mode, clusterModes }) ? { override: { reason: override.trim() } } : {}),
  };
}

/** objectBody returns the request for the change of a class or an approval policy. It is undefined while too little is entered. */
export function objectBody(kind: Extract<TicketKind, "class" | "approval-policy">, object: ObjectChange): Draftable | undefined {
  if (object.name === "") return undefined;
  if (object.verb === "delete") return { kind, items: [{ object: { kind: object.kind, name: object.name, verb: "delete" } }] };
  return object.spec?.trim() ? { kind, items: [{ object }] } : undefined;
}

/** WantedWorkload is a client outside the fleet whose registration is requested. */
export interface WantedWorkload {
  application: string;
  id: string;
  addresses: string[];
  description: string;
}

/** workloadId matches the ids that a workload may have, as in api/openapi.yaml. */
export const workloadId = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
/** workloadAddresses is the maximum number of addresses of a workload, as in api/openapi.yaml. */
export const workloadAddresses = 64;

/** isWholeWorkload reports whether a workload is complete and valid. */
export const isWholeWorkload = ({ application, id, addresses }: WantedWorkload): boolean => application !== "" && workloadId.test(id.trim()) && addresses.length > 0 && addresses.length <= workloadAddresses;

/** workloadBody returns the request for the registration of workloads. It is undefined if there are none or too many, or if one is incomplete. */
export function workloadBody(workloads: WantedWorkload[]): Draftable | undefined {
  if (workloads.length === 0 || workloads.length > basketLimit || !workloads.every(isWholeWorkload)) return undefined;
  return {
    kind: "workload",
    items: workloads.map(({ application, id, addresses, description }) => ({ application, workload: { id: id.trim(), addresses, ...(description.trim() ? { description: description.trim() } : {}) } })),
  };
}

/** passedWorkloads validates the workloads that another page passed in the history state. */
export function passedWorkloads(state: unknown): WantedWorkload[] {
  const { workloads } = (state ?? {}) as Record<string, unknown>;
  if (!Array.isArray(workloads)) return [];
  return workloads.flatMap((each: unknown) => {
    const { application, id, addresses, description } = (each ?? {}) as Record<string, unknown>;
    if (typeof application !== "string" || typeof id !== "string" || !Array.isArray(addresses)) return [];
    return [{ application, id, addresses: addresses.filter((address) => typeof address === "string"), description: typeof description === "string" ? description : "" }];
  });
}

/** parseTarget parses the reference to an item that links carry, such as `T-12/0`. */
export function parseTarget(text: string | null): { ticket: string; item: number } | undefined {
  const match = /^(T-\d{1,12})(?:\/(\d{1,3}))?$/.exec(text ?? "");
  return match?.[1] ? { ticket: match[1], item: Number(match[2] ?? 0) } : undefined;
}

/** forPreview adds a fixed reason: the reason does not affect the preview, so that typing it sends no new request. */
export const forPreview = (body: Draftable): NewTicket => ({ ...body, reason: "preview" });

/** scopeEffects are the effects of a statement. */
export const scopeEffects = ["Allow", "Deny"] as const;
/** isScopeEffect reports whether a value is one of scopeEffects. */
export const isScopeEffect = (value: unknown): value is (typeof scopeEffects)[number] => scopeEffects.some((each) => each === value);
/** scopeNames is the maximum number of subjects, and of resources, of a statement, as in api/openapi.yaml. */
export const scopeNames = 50;

/** StatementRequest contains the values of the form for a statement. */
export interface StatementRequest {
  effect: (typeof scopeEffects)[number];
  subjects: string[];
  resources: string[];
  actions: string[];
  duration: DurationValue;
  /** Absent if the statement counts at any hour. */
  hours?: WeeklyHours | undefined;
}

/** statementBody returns the request for a statement. It is undefined while too little is entered. */
export function statementBody({ effect, subjects, resources, actions, duration, hours }: StatementRequest): Draftable | undefined {
  if (subjects.length === 0 || resources.length === 0 || actions.length === 0 || durationError(duration) || hoursError(hours)) return undefined;
  const seconds = durationSeconds(duration);
  return {
    kind: "statement",
    items: [{ scope: { effect, subjects, resources }, actions, ...(hours ? { hours: hoursBody(hours) } : {}) }],
    ...(seconds === undefined ? {} : { durationSeconds: seconds }),
  };
}
