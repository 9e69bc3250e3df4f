/** The fleet: members and findings. The server answers only the security team and auditors. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { components, operations } from "./schema.gen";
import type { DowngradeScope, FindingKind, StatementIssueKind } from "./types";
import type { AccessOrder, FindingOrder, PolicyOrder } from "../lib/use-server-sort";
import { keys } from "./keys";

type Schemas = components["schemas"];
/** AccessFilter is the filter of the access map: the query parameters of `GET /access/graph`. */
export type AccessFilter = NonNullable<operations["getAccessGraph"]["parameters"]["query"]>;

/** often is the interval in milliseconds at which the fleet is read: no event reports that a member stopped answering. */
const often = 15_000;
/** usesFresh is how long the last uses of statements stay fresh, in milliseconds: the server reads a year of flows for them. */
const usesFresh = 60_000;
const firstPage = { initialPageParam: undefined as string | undefined, getNextPageParam: (page: { nextCursor?: string }) => page.nextCursor || undefined, placeholderData: keepPreviousData };

/** useFleet reads the members of the fleet, and again every 15 s. */
export function useFleet() {
  return useQuery({ queryKey: keys.fleet.all, queryFn: ({ signal }) => unwrap(client.GET("/fleet", { signal })), refetchInterval: often });
}

/** useMember reads one member with its findings and units, and again every 15 s. */
export function useMember(member: string) {
  return useQuery({ queryKey: keys.fleet.member(member), queryFn: ({ signal }) => unwrap(client.GET("/fleet/{member}", { signal, params: { path: { member } } })), refetchInterval: often });
}

/** useAccessEdges reads the statements between clients and resources that match the filter, in pages of 100. */
export function useAccessEdges(filter: AccessFilter & { sort?: AccessOrder }) {
  return useInfiniteQuery({
    queryKey: keys.accessMap.edges(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/access", { signal, params: { query: { ...filter, limit: 100, cursor: pageParam } } })),
    ...firstPage,
  });
}

/** useAccessGraph reads the graph of who can reach what, for the access map. */
export function useAccessGraph(filter: AccessFilter) {
  return useQuery({ queryKey: keys.accessMap.graph(filter), queryFn: ({ signal }) => unwrap(client.GET("/access/graph", { signal, params: { query: filter } })), placeholderData: keepPreviousData, staleTime: often });
}

/** useAccessPath reads the statements by which one name can reach another. Nothing is read while one of them is empty. */
export function useAccessPath(from: string, to: string) {
  return useQuery({ queryKey: keys.accessMap.path(from, to), queryFn: ({ signal }) => unwrap(client.GET("/access/path", { signal, params: { query: { from, to } } })), enabled: from !== "" && to !== "", retry: false });
}

/** useAccessPolicies reads the policies that match the filter, in pages of 100. */
export function useAccessPolicies(filter: { origin?: Schemas["PolicyOriginKind"][]; issue?: StatementIssueKind[]; q?: string; sort?: PolicyOrder }) {
  return useInfiniteQuery({
    queryKey: keys.accessPolicy.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/policies", { signal, params: { query: { ...filter, limit: 100, cursor: pageParam } } })),
    ...firstPage,
  });
}

/** useAccessPolicy reads one policy with its statements and its YAML. */
export function useAccessPolicy(name: string) {
  return useQuery({ queryKey: keys.accessPolicy.one(name), queryFn: ({ signal }) => unwrap(client.GET("/policies/{name}", { signal, params: { path: { name } } })) });
}

/** useAccessPolicyUses reads when the statements of a policy were last used. */
export function useAccessPolicyUses(name: string) {
  return useQuery({ queryKey: keys.accessPolicy.uses(name), queryFn: ({ signal }) => unwrap(client.GET("/policies/{name}/uses", { signal, params: { path: { name } } })), staleTime: usesFresh });
}

/** useFindings reads the findings that match the filter, in pages of 100. It reads them again every 15 s while only the first page is shown. */
export function useFindings(filter: { kind?: FindingKind[]; member?: string; q?: string; sort?: FindingOrder }) {
  return useInfiniteQuery({
    queryKey: keys.findings.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/findings", { signal, params: { query: { ...filter, limit: 100, cursor: pageParam } } })),
    ...firstPage,
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) <= 1 ? often : false),
  });
}

/** Scope names the resources that a downgrade opens: all of them, or those of one class. */
export interface Scope {
  scope: DowngradeScope;
  class?: string;
}

/**
 * useDowngrade reads the downgrade of a scope: its extent and its progress. It reads every second while a downgrade begins or ends, and otherwise every
 * 5 s.
 */
export function useDowngrade(scope: Scope, enabled = true) {
  return useQuery({
    queryKey: keys.downgrade.of(scope),
    queryFn: ({ signal }) => unwrap(client.GET("/downgrade", { signal, params: { query: scope } })),
    enabled,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.run && !state.data.run.finishedAt ? 1_000 : 5_000),
  });
}

function useSwitched() {
  const cache = useQueryClient();
  return () => {
    for (const queryKey of [keys.downgrade.all, keys.resource.all, keys.rollout.all, keys.findings.all]) void cache.invalidateQueries({ queryKey });
  };
}

/** useStartDowngrade returns the mutation that begins a downgrade. */
export function useStartDowngrade() {
  return useMutation({ mutationFn: (body: Schemas["NewDowngrade"]) => unwrap(client.POST("/downgrade", { body })), onSettled: useSwitched() });
}

/** useResumeDowngrade returns the mutation that ends a downgrade. */
export function useResumeDowngrade() {
  return useMutation({ mutationFn: (body: Schemas["EndDowngrade"]) => unwrap(client.DELETE("/downgrade", { body })), onSettled: useSwitched() });
}
