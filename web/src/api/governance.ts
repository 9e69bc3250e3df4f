/** Requests about policies, classes, the catalog, workloads and the ledger. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { client, settled, unwrap } from "./client";
import { useReread } from "./use-reread";
import type { Entity, NewTicket, SyncInput, Workload } from "./types";
import type { CatalogOrder, LedgerOrder } from "../lib/use-server-sort";
import { keys } from "./keys";

/** catalogKeys contains the keys of all queries whose answers show entities of the catalog. */
const catalogKeys = [keys.catalog.all, keys.application.all, keys.resource.all, keys.people.all, keys.person.all, keys.search.all, keys.home, keys.me];

/** useApprovalPolicy reads one approval policy with its YAML, which the list leaves out. */
export function useApprovalPolicy(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.approvalPolicy.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/approval-policies/{id}", { signal, params: { path: { id } } })),
    enabled: enabled && id !== "",
  });
}

/** useOrganizations reads the organizations that the person may see. */
export function useOrganizations(enabled = true) {
  return useQuery({ queryKey: keys.organization.list, queryFn: ({ signal }) => unwrap(client.GET("/organizations", { signal })), enabled });
}

/** useOrganization reads one organization with its YAML, which the list leaves out. */
export function useOrganization(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.organization.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/organizations/{id}", { signal, params: { path: { id } } })),
    enabled: enabled && id !== "",
  });
}

/** useWhatIf reads the people who would have to approve the request. Nothing is read while the request is undefined, because it is not complete enough. */
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

/** useCatalogSources reads the sources of the catalog and the state of their synchronization. */
export function useCatalogSources() {
  return useQuery({ queryKey: keys.catalog.sources, queryFn: ({ signal }) => unwrap(client.GET("/catalog/sources", { signal })) });
}

/** usePreviewSync returns the mutation that computes what a synchronization of a source would change, without changing it. */
export function usePreviewSync() {
  return useMutation({
    mutationFn: ({ source, body }: { source: string; body: SyncInput }) => unwrap(client.POST("/catalog/sources/{id}/preview", { params: { path: { id: source } }, body })),
  });
}

/** useApplySync returns the mutation that applies a synchronization that was previewed. */
export function useApplySync() {
  return useMutation({
    mutationFn: ({ source, token, removeGone, reason }: { source: string; token: string; removeGone: boolean; reason: string }) =>
      unwrap(client.POST("/catalog/sources/{id}/apply", { params: { path: { id: source } }, body: { token, removeGone, reason } })),
    onSuccess: useReread(...catalogKeys),
  });
}

/** EntityFilter selects the entities of the catalog. */
export interface EntityFilter {
  q?: string;
  kind?: Entity["kind"];
  source?: string;
  /** Only what teams of the organization own; required of its administrators. */
  organization?: string;
  gone?: boolean;
  sort?: CatalogOrder;
}

/** useEntities reads the entities of the catalog that match the filter. */
export function useEntities(filter: EntityFilter) {
  return useInfiniteQuery({
    queryKey: keys.catalog.entities(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/catalog/entities", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

/** usePutEntity returns the mutation that creates or changes an entity of the catalog. */
export function usePutEntity() {
  return useMutation({ mutationFn: (body: Entity) => unwrap(client.POST("/catalog/entities", { body })), onSuccess: useReread(...catalogKeys) });
}

/** useDeleteEntity returns the mutation that removes an entity from the catalog. */
export function useDeleteEntity() {
  return useMutation({
    mutationFn: ({ kind, id, reason }: { kind: Entity["kind"]; id: string; reason: string }) => settled(client.DELETE("/catalog/entities/{kind}/{id}", { params: { path: { kind, id } }, body: { reason } })),
    onSuccess: useReread(...catalogKeys),
  });
}

/** WorkloadFilter selects the external workloads. */
export interface WorkloadFilter {
  q?: string;
  source?: string;
  application?: string;
}

/** useWorkloadList reads the external workloads that match the filter. */
export function useWorkloadList(filter: WorkloadFilter) {
  return useInfiniteQuery({
    queryKey: keys.workload.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/workloads", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

/** workloadsAtOnce is the maximum number of workloads that the server accepts in one call. */
export const workloadsAtOnce = 1_000;

/** usePutWorkloads returns the mutation that registers external workloads, in parts of at most 1,000, and returns the result of each. */
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

/** WorkloadSyncInput is the complete list of the workloads of one source, to preview or to apply. */
export interface WorkloadSyncInput {
  source: string;
  items: Workload[];
  /** The token of the preview that was read; without a token the call is a preview. */
  token?: string;
  /** Confirms that many workloads may be removed. */
  confirm: boolean;
}

/** useSyncWorkloads returns the mutation that previews, or with a token applies, the workloads of a source. */
export function useSyncWorkloads() {
  return useMutation({
    mutationFn: (body: WorkloadSyncInput) => unwrap(client.POST("/workloads/sync", { body })),
    onSettled: useReread(keys.workload.all),
  });
}

/** useDeleteWorkload returns the mutation that removes an external workload. */
export function useDeleteWorkload() {
  return useMutation({
    mutationFn: (id: string) => settled(client.DELETE("/workloads/{id}", { params: { path: { id } } })),
    onSettled: useReread(keys.workload.all),
  });
}

/** LedgerFilter selects the lines of the ledger. */
export interface LedgerFilter {
  actor?: string;
  action?: string;
  object?: string;
  from?: string;
  to?: string;
  sort?: LedgerOrder;
}

/** useLedger reads the lines of the ledger that match the filter. */
export function useLedger(filter: LedgerFilter) {
  return useInfiniteQuery({
    queryKey: keys.ledger(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/ledger", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

/** useVerifyLedger returns the mutation that verifies the whole ledger. It takes long, so it runs only on demand. */
export function useVerifyLedger() {
  return useMutation({ mutationFn: () => unwrap(client.POST("/ledger/verify")) });
}
