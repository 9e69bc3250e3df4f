/** The request forms' rules. Pure; the server checks them again. */
import type { Mode, NewTicket, ObjectChange, TicketKind } from "../api/types";
import { secondsPerDay, secondsPerHour } from "./time";

export const durationChoices = ["1", "7", "30", "90", "revoked", "custom"] as const;
export type DurationChoice = (typeof durationChoices)[number];
export type CustomUnit = "hours" | "days";

export interface DurationValue {
  duration: DurationChoice;
  customAmount: number | undefined;
  customUnit: CustomUnit;
}

export const usualDuration: DurationValue = { duration: "30", customAmount: 12, customUnit: "hours" };

/** From api/openapi.yaml. */
export const textLimit = 2_000;
export const basketLimit = 50;
const shortest = 300;
const longest = 31_622_400;

/** Undefined: until revoked. NaN: not a duration. */
export function durationSeconds({ duration, customAmount, customUnit }: DurationValue): number | undefined {
  if (duration === "revoked") return undefined;
  if (duration !== "custom") return Number(duration) * secondsPerDay;
  if (customAmount === undefined) return Number.NaN;
  return Math.round(customAmount * (customUnit === "days" ? secondsPerDay : secondsPerHour));
}

/** `range`: never allowed. `cap`: longer than the approval policy allows. */
export function durationError(value: DurationValue, cap?: number): "range" | "cap" | undefined {
  const seconds = durationSeconds(value);
  if (seconds !== undefined && !(seconds >= shortest && seconds <= longest)) return "range";
  if (cap !== undefined && (seconds === undefined || seconds > cap)) return "cap";
  return undefined;
}

export function reasonError(reason: string): "missing" | "long" | undefined {
  const text = reason.trim();
  if (text === "") return "missing";
  return text.length > textLimit ? "long" : undefined;
}

/** One resource of the basket. */
export interface Wanted {
  resource: string;
  actions: string[];
}

export interface AccessRequest {
  application: string;
  basket: Wanted[];
  duration: DurationValue;
}

export interface AccessErrors {
  application?: "missing";
  basket?: "missing";
  /** Resources of the basket without an action. */
  actions: string[];
  duration?: "range" | "cap";
}

export function accessErrors({ application, basket, duration }: AccessRequest, cap?: number): AccessErrors {
  const errors: AccessErrors = { actions: basket.filter(({ actions }) => actions.length === 0).map(({ resource }) => resource) };
  if (application === "") errors.application = "missing";
  if (basket.length === 0) errors.basket = "missing";
  const wrong = durationError(duration, cap);
  if (wrong) errors.duration = wrong;
  return errors;
}

export const isWrong = ({ actions, ...rest }: AccessErrors): boolean => actions.length > 0 || Object.keys(rest).length > 0;

/** The request without its reason. */
export type Draftable = Omit<NewTicket, "reason">;

export function accessBody({ application, basket, duration }: AccessRequest): Draftable {
  const seconds = durationSeconds(duration);
  return {
    items: basket.map(({ resource, actions }) => ({ application, resource, actions })),
    ...(seconds === undefined ? {} : { durationSeconds: seconds }),
  };
}

/**
 * As much of the request as already means something, for a preview: resources whose actions are still to be chosen are
 * left out. Items of the answer are in the same order.
 */
export function accessPreview(request: AccessRequest): Draftable | undefined {
  const basket = request.basket.filter(({ actions }) => actions.length > 0);
  if (request.application === "" || basket.length === 0 || durationError(request.duration)) return undefined;
  return accessBody({ ...request, basket });
}

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

/** From api/openapi.yaml. */
export const workloadId = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
export const workloadAddresses = 64;

export const isWholeWorkload = ({ application, id, addresses }: WantedWorkload): boolean => application !== "" && workloadId.test(id.trim()) && addresses.length > 0 && addresses.length <= workloadAddresses;

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

/** `T-12/0`, as links carry it. */
export function parseTarget(text: string | null): { ticket: string; item: number } | undefined {
  const match = /^(T-\d{1,12})(?:\/(\d{1,3}))?$/.exec(text ?? "");
  return match?.[1] ? { ticket: match[1], item: Number(match[2] ?? 0) } : undefined;
}

/** forPreview adds a fixed reason: the reason does not affect the preview, so that typing it sends no new request. */
export const forPreview = (body: Draftable): NewTicket => ({ ...body, reason: "preview" });
