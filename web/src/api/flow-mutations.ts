/** Writes about the mode of resources and their way to Enforce. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { asApiError, client, unwrap } from "./client";
import type { ApiError } from "./client";
import type { Resource } from "./types";
import type { components } from "./schema.gen";
import { useBatches } from "./batches";
import { keys } from "./keys";
import { useReread } from "./use-reread";

type Schemas = components["schemas"];

/** useStoredResource returns a function that stores the resource of an answer in the cache, and reads again what depends on it. */
function useStoredResource(id: string) {
  const cache = useQueryClient();
  return (resource: Resource) => {
    cache.setQueryData(keys.resource.one(id), resource);
    void cache.invalidateQueries({ queryKey: keys.resource.all });
    void cache.invalidateQueries({ queryKey: keys.rollout.all });
  };
}

/** useTemporaryAudit returns the mutation that begins or extends the temporary audit of a resource. */
export function useTemporaryAudit(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewTemporaryAudit"]) => unwrap(client.PUT("/resources/{id}/temporary-audit", { params: { path: { id } }, body })),
    onSuccess: useStoredResource(id),
    onError: useReread(keys.resource.one(id)), // a refused call may have been about an outdated state
  });
}

/** useEndTemporaryAudit returns the mutation that ends the temporary audit of a resource. */
export function useEndTemporaryAudit(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["EndTemporaryAudit"]) => unwrap(client.DELETE("/resources/{id}/temporary-audit", { params: { path: { id } }, body })),
    onSuccess: useStoredResource(id),
    onError: useReread(keys.resource.one(id)), // a refused call may have been about an outdated state
  });
}

function useRereadRollout() {
  const cache = useQueryClient();
  return () => {
    for (const queryKey of [keys.rollout.all, keys.resource.all, keys.ticket.all, keys.me, keys.home]) void cache.invalidateQueries({ queryKey });
  };
}

interface Keyed<T> {
  body: T;
  key: string;
  /** onProgress is called with the number of resources that are done so far. */
  onProgress?: (done: number) => void;
}

/** announcedAtOnce is the maximum number of resources in one call that announces them. */
const announcedAtOnce = 200;
/** advancedAtOnce is the maximum number of resources in one call that advances their rollout. */
export const advancedAtOnce = 50;

/** notSent is the code of resources that were not sent because an earlier part failed. */
export const notSent = "not-sent";

interface Several {
  items: Schemas["RolloutResult"][];
}

/**
 * inParts makes a call about many resources as several calls, one after the other, each with a key of its own. If one fails after others were done, its
 * resources and those behind it get results that say so, because what was done before is not undone.
 */
async function inParts(resources: string[], atOnce: number, key: string, onProgress: ((done: number) => void) | undefined, call: (some: string[], key: string) => Promise<Several>): Promise<Several> {
  const items: Several["items"] = [];
  for (let at = 0; at < resources.length; at += atOnce) {
    const some = resources.slice(at, at + atOnce);
    try {
      items.push(...(await call(some, at === 0 ? key : `${key}-${at}`)).items);
    } catch (cause) {
      if (at === 0) throw cause;
      const { code, status, message, problem } = asApiError(cause);
      const why = problem ?? { type: "about:blank", title: message, status, code, message: { code: "verbatim", text: message } };
      const unasked = { type: "about:blank", title: "Not sent", status: 0, code: notSent, message: { code: "verbatim", text: "Not sent" } };
      items.push(...some.map((resource) => ({ resource, ok: false, problem: why })), ...resources.slice(at + atOnce).map((resource) => ({ resource, ok: false, problem: unasked })));
      break;
    }
    onProgress?.(Math.min(at + atOnce, resources.length));
  }
  return { items };
}

/** useAnnounce returns the mutation that announces the enforcement of resources, in parts of at most 200. */
export function useAnnounce() {
  return useMutation({
    mutationFn: ({ body, key, onProgress }: Keyed<Schemas["NewAnnouncement"]>) =>
      inParts(body.resources, announcedAtOnce, key, onProgress, (resources, part) => unwrap(client.POST("/rollout/announce", { body: { ...body, resources }, params: { header: { "Idempotency-Key": part } } }))),
    onSettled: useRereadRollout(),
  });
}

/** useAdvance returns the mutation that moves resources to another stage of the rollout, in parts of at most 50. */
export function useAdvance() {
  return useMutation({
    mutationFn: ({ body, key, onProgress }: Keyed<Schemas["RolloutAdvance"]>) =>
      inParts(body.resources, advancedAtOnce, key, onProgress, (resources, part) => unwrap(client.POST("/rollout/advance", { body: { ...body, resources }, params: { header: { "Idempotency-Key": part } } }))),
    onSettled: useRereadRollout(),
  });
}

/** useGuard returns the mutation that configures the rollout guard of a resource. */
export function useGuard(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewGuard"]) => unwrap(client.PUT("/rollout/{id}/guard", { params: { path: { id } }, body })),
    onSettled: useRereadRollout(),
  });
}

/** useInstructWaves returns the mutation that gives an instruction about the waves of a resource. */
export function useInstructWaves(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewWavesInstruction"]) => unwrap(client.PUT("/rollout/{id}/waves", { params: { path: { id } }, body })),
    onSettled: useRereadRollout(),
  });
}

/** useInstructClassWaves returns the mutation that gives an instruction about the waves of a change of a class. */
export function useInstructClassWaves(name: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["NewWavesInstruction"]) => unwrap(client.PUT("/classes/{name}/waves", { params: { path: { name } }, body })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.class.list }),
  });
}

/** useReviewProposal returns the mutation that records a review of the observed clients of a resource. */
export function useReviewProposal(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewProposalReview"]) => unwrap(client.PUT("/resources/{id}/proposal/review", { params: { path: { id } }, body })),
    onSuccess: useReread(keys.resource.all, keys.proposals, keys.home),
  });
}

/** useNotifyClient returns the mutation that notifies the owners of an application that its access to a resource is not wanted. */
export function useNotifyClient(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewClientNotice"]) => unwrap(client.POST("/resources/{id}/proposal/notices", { params: { path: { id } }, body })),
    onSuccess: useReread(keys.proposals),
    onError: useReread(keys.proposals), // somebody else may have notified them meanwhile
  });
}

/** Grant names a grant to revoke: a ticket and the position of its item, or the whole ticket if the position is undefined. */
export interface Grant {
  ticket: string;
  item: number | undefined;
}

/** Revoked is a grant with the error of its revocation, which is undefined if the revocation was accepted. */
export interface Revoked extends Grant {
  error: ApiError | undefined;
}

/** revokeGrant revokes a grant. A refusal is its result, so that it does not stop the revocations after it. */
export async function revokeGrant(grant: Grant, reason: string): Promise<Revoked> {
  const body = { reason, ...(grant.item === undefined ? {} : { item: grant.item }) };
  const error = await unwrap(client.POST("/tickets/{id}/revoke", { params: { path: { id: grant.ticket } }, body })).then(() => undefined, asApiError);
  return { ...grant, error };
}

/** useRevokeMany returns the mutation that revokes any number of grants, one after the other. */
export function useRevokeMany() {
  return useBatches<Grant, Revoked>(1, useReread(keys.ticket.all, keys.access.all, keys.unused.all, keys.home, keys.me));
}
