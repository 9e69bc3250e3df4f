/** Writes about the mode of resources and their way to Enforce. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { asApiError, client, unwrap } from "./client";
import type { ApiError } from "./client";
import type { Resource } from "./types";
import type { components } from "./schema.gen";

type Schemas = components["schemas"];

/** The answer is how the resource is now; its members, card and connections follow. */
function useStoredResource(id: string) {
  const cache = useQueryClient();
  return (resource: Resource) => {
    cache.setQueryData(["resource", id], resource);
    void cache.invalidateQueries({ queryKey: ["resource"] });
    void cache.invalidateQueries({ queryKey: ["rollout"] });
  };
}

/** A refusal as stale means that what is shown is old. */
function useReread(id: string) {
  const cache = useQueryClient();
  return () => void cache.invalidateQueries({ queryKey: ["resource", id] });
}

export function useTemporaryAudit(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewTemporaryAudit"]) => unwrap(client.PUT("/resources/{id}/temporary-audit", { params: { path: { id } }, body })),
    onSuccess: useStoredResource(id),
    onError: useReread(id),
  });
}

export function useEndTemporaryAudit(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["EndTemporaryAudit"]) => unwrap(client.DELETE("/resources/{id}/temporary-audit", { params: { path: { id } }, body })),
    onSuccess: useStoredResource(id),
    onError: useReread(id),
  });
}

function useRereadRollout() {
  const cache = useQueryClient();
  return () => {
    for (const key of ["rollout", "resource", "ticket", "me", "home"]) void cache.invalidateQueries({ queryKey: [key] });
  };
}

interface Keyed<T> {
  body: T;
  key: string;
}

export function useAnnounce() {
  return useMutation({
    mutationFn: ({ body, key }: Keyed<Schemas["NewAnnouncement"]>) => unwrap(client.POST("/rollout/announce", { body, params: { header: { "Idempotency-Key": key } } })),
    onSettled: useRereadRollout(),
  });
}

export function useAdvance() {
  return useMutation({
    mutationFn: ({ body, key }: Keyed<Schemas["RolloutAdvance"]>) => unwrap(client.POST("/rollout/advance", { body, params: { header: { "Idempotency-Key": key } } })),
    onSettled: useRereadRollout(),
  });
}

export function useGuard(id: string) {
  return useMutation({
    mutationFn: (body: Schemas["NewGuard"]) => unwrap(client.PUT("/rollout/{id}/guard", { params: { path: { id } }, body })),
    onSettled: useRereadRollout(),
  });
}

export interface Grant {
  ticket: string;
  item: number | undefined;
}

export interface Revoked extends Grant {
  error: ApiError | undefined;
}

/** One reason for many grants, one after the other: one that is refused does not keep the others. */
export function useRevokeMany() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ grants, reason }: { grants: Grant[]; reason: string }) => {
      const done: Revoked[] = [];
      for (const grant of grants) {
        const body = { reason, ...(grant.item === undefined ? {} : { item: grant.item }) };
        const error = await unwrap(client.POST("/tickets/{id}/revoke", { params: { path: { id: grant.ticket } }, body })).then(() => undefined, asApiError);
        done.push({ ...grant, error });
      }
      return done;
    },
    onSettled: () => {
      for (const key of ["ticket", "access", "unused", "home", "me"]) void cache.invalidateQueries({ queryKey: [key] });
    },
  });
}
