/** Reads: one hook per operation. Keys begin with the kind of object, so that a live hint can refresh a kind. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { useLive } from "./live-context";
import type { Decision, NewTicket, SearchHit, TicketKind, TicketState } from "./types";
import { keys } from "./keys";

/** While the live stream is down, views about tickets ask again this often. */
const fallbackInterval = 5_000;

function useFallback(): number | false {
  return useLive() === "lost" ? fallbackInterval : false;
}

export function useMe() {
  return useQuery({
    queryKey: keys.me,
    queryFn: ({ signal }) => unwrap(client.GET("/me", { signal })),
    staleTime: 10_000,
    // There is no event for a host cluster that stops answering, so this is polled.
    refetchInterval: useFallback() || 15_000,
  });
}

/** Returns whether the person may submit requests. Auditors may not, and the server refuses them too. Before the person is known, the result is false. */
export function useMayRequest(): boolean {
  const me = useMe().data;
  return me !== undefined && !me.roles.includes("auditor");
}

/** One call for everything that the first page shows. */
export function useHome(enabled: boolean) {
  return useQuery({
    queryKey: keys.home,
    queryFn: ({ signal }) => unwrap(client.GET("/home", { signal })),
    enabled,
    // Connections have no live hint.
    refetchInterval: useFallback() || 30_000,
  });
}

export function useSearch(q: string, kind?: SearchHit["kind"][], limit = 20) {
  return useQuery({
    queryKey: keys.search.of(q, kind ?? [], limit),
    queryFn: ({ signal }) => unwrap(client.GET("/search", { signal, params: { query: { q, kind, limit } } })),
    enabled: q !== "",
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
}

export function usePeople(q: string, enabled = true) {
  return useQuery({
    queryKey: keys.people.of(q),
    queryFn: ({ signal }) => unwrap(client.GET("/people", { signal, params: { query: { limit: 20, ...(q ? { q } : {}) } } })),
    enabled,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

export function usePerson(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.person.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/people/{id}", { signal, params: { path: { id } } })),
    enabled: enabled && id !== "",
    staleTime: 60_000,
  });
}

export interface CatalogFilter {
  mine?: boolean;
  q?: string;
  owner?: string;
  limit?: number;
  /** Of resources: what refused this application comes first. */
  deniedFor?: string;
}

export function useApplications(filter: CatalogFilter, enabled = true) {
  return useInfiniteQuery({
    queryKey: keys.application.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/applications", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
    enabled,
  });
}

export function useResources(filter: CatalogFilter, enabled = true) {
  return useInfiniteQuery({
    queryKey: keys.resource.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/resources", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
    enabled,
  });
}

export function useApplication(id: string) {
  return useQuery({
    queryKey: keys.application.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/applications/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
  });
}

export function resourceQuery(id: string) {
  return {
    queryKey: keys.resource.one(id),
    queryFn: ({ signal }: { signal: AbortSignal }) => unwrap(client.GET("/resources/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
  };
}

export function useResource(id: string) {
  return useQuery({ ...resourceQuery(id), refetchInterval: useFallback() });
}

export function useApplicationAccess(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.access.ofApplication(id),
    queryFn: ({ signal }) => unwrap(client.GET("/applications/{id}/access", { signal, params: { path: { id } } })),
    enabled,
  });
}

export function useResourceAccess(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.access.ofResource(id),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/access", { signal, params: { path: { id } } })),
    enabled,
  });
}

/** Connections have no live hint; they are rolled up by the collector, so a slow poll is what there is. */
const connectionsInterval = 10_000;

export const refused: Decision[] = ["denied", "default-denied"];

export function applicationConnections(id: string, decision?: Decision[]) {
  return {
    queryKey: keys.connections.ofApplication(id, decision ?? []),
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      unwrap(client.GET("/applications/{id}/connections", { signal, params: { path: { id }, query: { decision } } })),
    refetchInterval: connectionsInterval,
  };
}

export function useApplicationConnections(id: string, decision?: Decision[], enabled = true) {
  return useQuery({ ...applicationConnections(id, decision), enabled: enabled && id !== "" });
}

export function useResourceConnections(id: string, decision?: Decision[]) {
  return useQuery({
    queryKey: keys.connections.ofResource(id, decision ?? []),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/connections", { signal, params: { path: { id }, query: { decision } } })),
    refetchInterval: connectionsInterval,
  });
}

/** Clients outside the fleet that act as the application. */
export function useWorkloads(application: string) {
  return useInfiniteQuery({
    queryKey: keys.workload.ofApplication(application),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/workloads", { signal, params: { query: { application, limit: 50, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    enabled: application !== "",
  });
}

export function useClasses(enabled = true) {
  return useQuery({ queryKey: keys.class.list, queryFn: ({ signal }) => unwrap(client.GET("/classes", { signal })), enabled });
}

export function useApprovalPolicies(enabled = true) {
  return useQuery({ queryKey: keys.approvalPolicy.list, queryFn: ({ signal }) => unwrap(client.GET("/approval-policies", { signal })), enabled });
}

export type TicketView = "mine" | "approvals" | "decided" | "review" | "all";

export interface TicketFilter {
  view: TicketView;
  state?: TicketState[];
  kind?: TicketKind[];
  q?: string;
  requester?: string;
  expiringWithinSeconds?: number;
  application?: string;
  resource?: string;
  limit?: number;
}

export function useTickets(filter: TicketFilter) {
  return useInfiniteQuery({
    queryKey: keys.ticket.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/tickets", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
    refetchInterval: useFallback(),
  });
}

export function useTicket(id: string) {
  return useQuery({
    queryKey: keys.ticket.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/tickets/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
    refetchInterval: useFallback(),
  });
}

/** What the ticket changes; read only once it is looked at. */
export function useTicketChange(id: string) {
  return useQuery({
    queryKey: keys.ticket.change(id),
    queryFn: ({ signal }) => unwrap(client.GET("/tickets/{id}/change", { signal, params: { path: { id } } })),
    staleTime: 30_000,
  });
}

export function useTicketLedger(id: string) {
  return useQuery({
    queryKey: keys.ticket.ledger(id),
    queryFn: ({ signal }) => unwrap(client.GET("/tickets/{id}/ledger", { signal, params: { path: { id } } })),
    staleTime: 30_000,
  });
}

/** The preview of a request. It is read only when the request is complete enough. */
export function usePreview(request: NewTicket | undefined) {
  return useQuery({
    queryKey: keys.preview(request),
    queryFn: ({ signal }) => {
      if (!request) throw new Error("preview without a request");
      return unwrap(client.POST("/tickets/preview", { signal, body: request }));
    },
    enabled: request !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 10_000,
  });
}
