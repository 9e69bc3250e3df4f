/** Requests about policies, classes, the catalog, workloads and the ledger. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { client, settled, unwrap } from "./client";
import { useReread } from "./reread";
import type { Entity, NewTicket, SyncInput, Workload } from "./types";
import { keys } from "./keys";

/** What shows entities of the catalog anywhere. */
const catalogKeys = [keys.catalog.all, keys.application.all, keys.resource.all, keys.people.all, keys.person.all, keys.search.all, keys.home, keys.me];

/** One with its YAML, which the list leaves out. */
export function useApprovalPolicy(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.approvalPolicy.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/approval-policies/{id}", { signal, params: { path: { id } } })),
    enabled: enabled && id !== "",
  });
}

/** The people who would have to approve the request. It is read only when the request is complete enough. */
export function useWhatIf(request: NewTicket | undefined, as: string) {
  return useQuery({
    queryKey: keys.whatIf(request, as),
    queryFn: ({ signal }) => {
      if (!request) throw new Error("what-if without a request");
      return unwrap(client.POST("/tickets/what-if", { signal, body: { request, ...(as ? { as } : {}) } }));
    },
    enabled: request !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 10_000,
  });
}

export function useCatalogSources() {
  return useQuery({ queryKey: keys.catalog.sources, queryFn: ({ signal }) => unwrap(client.GET("/catalog/sources", { signal })) });
}

export function usePreviewSync() {
  return useMutation({
    mutationFn: ({ source, body }: { source: string; body: SyncInput }) => unwrap(client.POST("/catalog/sources/{id}/preview", { params: { path: { id: source } }, body })),
  });
}

export function useApplySync() {
  return useMutation({
    mutationFn: ({ source, token, removeGone, reason }: { source: string; token: string; removeGone: boolean; reason: string }) =>
      unwrap(client.POST("/catalog/sources/{id}/apply", { params: { path: { id: source } }, body: { token, removeGone, reason } })),
    onSuccess: useReread(...catalogKeys),
  });
}

export interface EntityFilter {
  q?: string;
  kind?: Entity["kind"];
  source?: string;
  gone?: boolean;
}

export function useEntities(filter: EntityFilter) {
  return useInfiniteQuery({
    queryKey: keys.catalog.entities(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/catalog/entities", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

export function usePutEntity() {
  return useMutation({ mutationFn: (body: Entity) => unwrap(client.POST("/catalog/entities", { body })), onSuccess: useReread(...catalogKeys) });
}

export function useDeleteEntity() {
  return useMutation({
    mutationFn: ({ kind, id, reason }: { kind: Entity["kind"]; id: string; reason: string }) => settled(client.DELETE("/catalog/entities/{kind}/{id}", { params: { path: { kind, id } }, body: { reason } })),
    onSuccess: useReread(...catalogKeys),
  });
}

export interface WorkloadFilter {
  q?: string;
  source?: string;
  application?: string;
}

export function useWorkloadList(filter: WorkloadFilter) {
  return useInfiniteQuery({
    queryKey: keys.workload.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/workloads", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

/** The most that the server takes at once. */
export const workloadsAtOnce = 1_000;

export function usePutWorkloads() {
  return useMutation({
    mutationFn: async (items: Workload[]) => {
      const results = [];
      for (let at = 0; at < items.length; at += workloadsAtOnce) {
        const answer = await unwrap(client.POST("/workloads", { body: { items: items.slice(at, at + workloadsAtOnce) } }));
        results.push(...answer.items);
      }
      return results;
    },
    // Also after a failure, because the first of several parts may have been stored.
    onSettled: useReread(keys.workload.all),
  });
}

export interface WorkloadSyncInput {
  source: string;
  items: Workload[];
  /** The token of the preview that was read; without a token the call is a preview. */
  token?: string;
  /** Confirms that many workloads may be removed. */
  confirm: boolean;
}

export function useSyncWorkloads() {
  return useMutation({
    mutationFn: (body: WorkloadSyncInput) => unwrap(client.POST("/workloads/sync", { body })),
    onSettled: useReread(keys.workload.all),
  });
}

export function useDeleteWorkload() {
  return useMutation({
    mutationFn: (id: string) => settled(client.DELETE("/workloads/{id}", { params: { path: { id } } })),
    onSettled: useReread(keys.workload.all),
  });
}

export interface LedgerFilter {
  actor?: string;
  action?: string;
  object?: string;
  from?: string;
  to?: string;
}

export function useLedger(filter: LedgerFilter) {
  return useInfiniteQuery({
    queryKey: keys.ledger(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/ledger", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

/** Verifies the whole ledger, which takes long: it runs only on demand. */
export function useVerifyLedger() {
  return useMutation({ mutationFn: () => unwrap(client.POST("/ledger/verify")) });
}
