/** Flows, evidence and proposals. No event reports new flows, so current views poll. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { flowQuery, windowOf } from "../lib/flow-filter";
import type { FlowFilter } from "../lib/flow-filter";
import type { ConnectionOrder } from "../lib/use-server-sort";
import { asJSON, client, unwrap } from "./client";
import type { NewDraft, NewTicket, RolloutStage } from "./types";
import { keys } from "./keys";

const interval = 15_000;
/**
 * follows returns the interval at which a list of flows is read again. A window with an end does not change any more, and a list with several pages must
 * not move, so neither is polled.
 */
const follows = (filter: Pick<FlowFilter, "until">) => (query: { state: { data?: { pages?: unknown[] } | undefined } }) =>
  filter.until === undefined && (query.state.data?.pages?.length ?? 0) <= 1 ? interval : false;

/** Page is the cursor of a later page, which keeps the window of the first one. */
interface Page {
  cursor: string;
  since: string;
  until: string;
}

const next = ({ nextCursor, since, until }: { nextCursor?: string; since: string; until: string }): Page | undefined => (nextCursor ? { cursor: nextCursor, since, until } : undefined);
const pageOf = (filter: FlowFilter, page: Page | undefined) => page ?? windowOf(filter, Date.now());

/** useFlows reads the counted connections that match the filter, in an order of the server, in pages of 100. */
export function useFlows(filter: FlowFilter, order: { sort?: ConnectionOrder } = {}) {
  return useInfiniteQuery({
    queryKey: keys.flows.list({ ...filter, ...order }),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/flows", { signal, params: { query: { ...flowQuery(filter), ...order, ...pageOf(filter, pageParam), limit: 100 } } })),
    initialPageParam: undefined as Page | undefined,
    getNextPageParam: next,
    placeholderData: keepPreviousData,
    refetchInterval: follows(filter),
  });
}

/** useRawFlows reads the single flows that match the filter, in pages of 100. */
export function useRawFlows(filter: FlowFilter) {
  return useInfiniteQuery({
    queryKey: keys.flows.raw(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/flows/raw", { signal, params: { query: { ...flowQuery(filter), ...pageOf(filter, pageParam), limit: 100 } } })),
    initialPageParam: undefined as Page | undefined,
    getNextPageParam: next,
    placeholderData: keepPreviousData,
    refetchInterval: follows(filter),
  });
}

/** useFlowSeries reads the number of connections over time, by decision. */
export function useFlowSeries(filter: FlowFilter) {
  return useQuery({
    queryKey: keys.flows.series(filter),
    queryFn: ({ signal }) => unwrap(client.GET("/flows/series", { signal, params: { query: { ...flowQuery(filter), ...windowOf(filter, Date.now()) } } })),
    placeholderData: keepPreviousData,
    refetchInterval: filter.until === undefined ? interval : false,
  });
}

/** trafficMapQuery returns the parameters of the traffic map. */
export function trafficMapQuery(filter: FlowFilter, now: number) {
  const { subject, resource, cluster, q } = flowQuery(filter);
  return { subject, resource, cluster, q, ...windowOf(filter, now) };
}

/** useTrafficMap reads who connected to what beside what is granted. It is not polled, so that the picture does not move while it is read. */
export function useTrafficMap(filter: FlowFilter) {
  return useQuery({
    queryKey: keys.flows.map(filter),
    queryFn: ({ signal }) => asJSON(unwrap(client.GET("/flows/map", { signal, params: { query: trafficMapQuery(filter, Date.now()) } }))),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

type Span = Pick<FlowFilter, "window" | "since" | "until">;

/** useFlowLosses reads the flows that are known to be missing in a window, in pages of 100. The losses of another window are not shown in their place. */
export function useFlowLosses({ window, since, until, cluster }: Span & { cluster: string[] }) {
  return useInfiniteQuery({
    queryKey: keys.flows.losses({ window, since, until }, cluster),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/flows/losses", { signal, params: { query: { ...(cluster.length > 0 ? { cluster } : {}), ...(pageParam ?? windowOf({ window, since, until }, Date.now())), limit: 100 } } })),
    initialPageParam: undefined as Page | undefined,
    getNextPageParam: next,
  });
}

/** useFlowCoverage reads how completely each member was watched in a window, by day. That of another window is not shown in its place. */
export function useFlowCoverage({ window, since, until }: Span) {
  return useQuery({
    queryKey: keys.flows.coverage({ window, since, until }),
    queryFn: ({ signal }) => unwrap(client.GET("/flows/coverage", { signal, params: { query: windowOf({ window, since, until }, Date.now()) } })),
    refetchInterval: until === undefined ? 60_000 : false,
  });
}

/**
 * useProposal reads the statements that would allow the clients seen in the flows of a resource. People decide by it, so the proposal for another resource
 * or period is never shown in its place.
 */
export function useProposal(id: string, span: { since?: string; until?: string }, enabled = true) {
  return useQuery({
    queryKey: keys.proposal(id, span),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/proposal", { signal, params: { path: { id }, query: span } })),
    enabled,
  });
}

/** useEvidence reads the evidence score of a resource, and again every minute. */
export function useEvidence(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.evidence(id),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/evidence", { signal, params: { path: { id } } })),
    enabled,
    refetchInterval: 60_000,
  });
}

/** useResourceUnused reads the unused grants on a resource. */
export function useResourceUnused(id: string, quietDays: number, enabled = true) {
  return useQuery({
    queryKey: keys.unused.ofResource(id, quietDays),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/unused", { signal, params: { path: { id }, query: { quietDays } } })),
    enabled,
  });
}

/** useApplicationUnused reads the unused grants of an application. */
export function useApplicationUnused(id: string, quietDays: number, enabled = true) {
  return useQuery({
    queryKey: keys.unused.ofApplication(id, quietDays),
    queryFn: ({ signal }) => unwrap(client.GET("/applications/{id}/unused", { signal, params: { path: { id }, query: { quietDays } } })),
    enabled,
  });
}

/** useUnused reads the unused grants that match the filter. Those of another number of days are not shown in their place. */
export function useUnused(filter: { quietDays: number; class?: string; owner?: string; q?: string }) {
  return useInfiniteQuery({
    queryKey: keys.unused.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/unused", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: (previous, query) => ((query?.queryKey[2] as typeof filter | undefined)?.quietDays === filter.quietDays ? previous : undefined),
  });
}

/** Period is when the connections that are replayed were seen. */
export interface Period {
  since?: string | undefined;
  until?: string | undefined;
}

/**
 * useImpactPreview reads the replay of a request that is being typed, over a period or the evidence window. Nothing is read while the request is
 * undefined. The replay of another request says nothing about this one, so it is never shown in its place.
 */
export function useImpactPreview(request: NewTicket | undefined, span: Period = {}) {
  return useQuery({
    queryKey: keys.impact(request, span),
    queryFn: ({ signal }) => {
      if (!request) throw new Error("replay without a request");
      return unwrap(client.POST("/tickets/impact", { signal, params: { query: span }, body: request }));
    },
    enabled: request !== undefined,
    retry: false,
    staleTime: 30_000,
  });
}

/** useDraftImpact reads the replay of a drafted policy, and of the enforcement of resources. Nothing is read while the draft is undefined. */
export function useDraftImpact(draft: NewDraft | undefined) {
  return useQuery({
    queryKey: keys.draftImpact(draft),
    queryFn: ({ signal }) => {
      if (!draft) throw new Error("replay without a draft");
      return unwrap(client.POST("/flows/impact", { signal, body: draft }));
    },
    enabled: draft !== undefined,
    retry: false,
    staleTime: 30_000,
  });
}

/** useTicketImpact reads the replay of a ticket, or of its revocation, over a period or the evidence window. */
export function useTicketImpact(id: string, change: "ticket" | "revoke", enabled = true, span: Period = {}) {
  return useQuery({
    queryKey: keys.ticket.impact(id, change, span),
    queryFn: ({ signal }) => unwrap(client.GET("/tickets/{id}/impact", { signal, params: { path: { id }, query: { change, ...span } } })),
    enabled,
    retry: false,
    staleTime: 30_000,
  });
}

/** useTicketFacts reads the facts about the items of a ticket, in pages of 10 items. The server refuses them to people who may see none of them. */
export function useTicketFacts(id: string) {
  return useInfiniteQuery({
    queryKey: keys.ticket.facts(id),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/tickets/{id}/facts", { signal, params: { path: { id }, query: { cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    retry: false,
    staleTime: 30_000,
  });
}

/** RolloutFilter selects the resources of the rollout board. */
export interface RolloutFilter {
  class?: string;
  owner?: string;
  stage?: RolloutStage[];
  q?: string;
  /** By id without it; the most advanced first otherwise. */
  sort?: "-stage";
}

/** useRolloutCard reads the rollout stage of one resource and its next step. */
export function useRolloutCard(id: string) {
  return useQuery({
    queryKey: keys.rollout.card(id),
    queryFn: ({ signal }) => unwrap(client.GET("/rollout/{id}", { signal, params: { path: { id } } })),
    refetchInterval: 30_000,
  });
}

/** useRollout reads the resources that match the filter with their stage and next step. It reads them again every 30 s while only the first page is shown. */
export function useRollout(filter: RolloutFilter, { enabled = true, limit = 100 } = {}) {
  return useInfiniteQuery({
    enabled,
    queryKey: keys.rollout.list(filter, limit),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/rollout", { signal, params: { query: { ...filter, limit, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) <= 1 ? 30_000 : false),
  });
}
