/** Reads: one hook per operation. Keys begin with the kind of object, so that a live hint can refresh a kind. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { asJSON, client, unwrap } from "./client";
import { useLive } from "./live-context";
import type { Decision, NewTicket, SearchHit, TicketKind, TicketState } from "./types";
import type { EntityOrder, TicketOrder } from "../lib/use-server-sort";
import { keys } from "./keys";

/** fallbackInterval is the interval in milliseconds at which tickets are read while the event stream is lost. */
const fallbackInterval = 5_000;

function useFallback(): number | false {
  return useLive() === "lost" ? fallbackInterval : false;
}

/** useMe reads the signed-in person with their roles and counts, and again every 15 s. */
export function useMe() {
  return useQuery({
    queryKey: keys.me,
    queryFn: ({ signal }) => unwrap(client.GET("/me", { signal })),
    staleTime: 10_000,
    // There is no event for a host cluster that stops answering, so this is polled.
    refetchInterval: useFallback() || 15_000,
  });
}

/**
 * useMayRequest reports whether the person may submit requests. Auditors may not, and the server refuses them too. Before the person is known, the
 * result is false.
 */
export function useMayRequest(): boolean {
  const me = useMe().data;
  return me !== undefined && !me.roles.includes("auditor");
}

/** useHome reads everything that the first page shows, with one call. */
export function useHome(enabled: boolean) {
  return useQuery({
    queryKey: keys.home,
    queryFn: ({ signal }) => unwrap(client.GET("/home", { signal })),
    enabled,
    // Connections have no live hint.
    refetchInterval: useFallback() || 30_000,
  });
}

/** useSearch reads the objects that match the text. Nothing is read while the text is empty. */
export function useSearch(q: string, kind?: SearchHit["kind"][], limit = 20) {
  return useQuery({
    queryKey: keys.search.of(q, kind ?? [], limit),
    queryFn: ({ signal }) => unwrap(client.GET("/search", { signal, params: { query: { q, kind, limit } } })),
    enabled: q !== "",
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
}

/** usePeople reads at most 20 people who match the text. */
export function usePeople(q: string, enabled = true) {
  return useQuery({
    queryKey: keys.people.of(q),
    queryFn: ({ signal }) => unwrap(client.GET("/people", { signal, params: { query: { limit: 20, ...(q ? { q } : {}) } } })),
    enabled,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

/** useGroups reads at most 20 groups that match the text. */
export function useGroups(q: string) {
  return useQuery({
    queryKey: keys.groups(q),
    queryFn: ({ signal }) => unwrap(client.GET("/groups", { signal, params: { query: { limit: 20, ...(q ? { q } : {}) } } })),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

/** useGroup reads one group by its id. */
export function useGroup(id: string) {
  return useQuery({
    queryKey: keys.group(id),
    queryFn: ({ signal }) => unwrap(client.GET("/groups/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
    staleTime: 60_000,
  });
}

/** usePerson reads one person with their leader, their groups and what they own. */
export function usePerson(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.person.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/people/{id}", { signal, params: { path: { id } } })),
    enabled: enabled && id !== "",
    staleTime: 60_000,
  });
}

/** CatalogFilter selects the applications or resources of the catalog. */
export interface CatalogFilter {
  mine?: boolean;
  q?: string;
  owner?: string;
  limit?: number;
  /** deniedFor lists the resources that refused this application first. */
  deniedFor?: string;
  sort?: EntityOrder;
}

/** useApplications reads the applications that match the filter. */
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

/** useResources reads the resources that match the filter. */
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

/** applicationQuery returns the options of the query for one application, for callers that read several applications at once. */
export function applicationQuery(id: string) {
  return {
    queryKey: keys.application.one(id),
    queryFn: ({ signal }: { signal: AbortSignal }) => unwrap(client.GET("/applications/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
  };
}

/** useApplication reads one application. */
export function useApplication(id: string) {
  return useQuery(applicationQuery(id));
}

/** resourceQuery returns the options of the query for one resource, for callers that read several resources at once. */
export function resourceQuery(id: string) {
  return {
    queryKey: keys.resource.one(id),
    queryFn: ({ signal }: { signal: AbortSignal }) => unwrap(client.GET("/resources/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
  };
}

/** useResource reads one resource with its protection. */
export function useResource(id: string) {
  return useQuery({ ...resourceQuery(id), refetchInterval: useFallback() });
}

/** usesFresh is the time in milliseconds in which last uses are not read again: a year of connections is searched for them. */
const usesFresh = 60_000;

/** useApplicationAccess reads the statements that allow or deny access to the application. */
export function useApplicationAccess(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.access.ofApplication(id),
    queryFn: ({ signal }) => unwrap(client.GET("/applications/{id}/access", { signal, params: { path: { id } } })),
    enabled,
  });
}

/** useResourceAccess reads the statements that allow or deny access to the resource. */
export function useResourceAccess(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.access.ofResource(id),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/access", { signal, params: { path: { id } } })),
    enabled,
  });
}

/** useApplicationAccessUses reads when the statements about the application last decided about its connections. */
export function useApplicationAccessUses(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.access.usesOfApplication(id),
    queryFn: ({ signal }) => unwrap(client.GET("/applications/{id}/access/uses", { signal, params: { path: { id } } })),
    enabled,
    staleTime: usesFresh,
  });
}

/** useResourceAccessUses reads when the statements about the resource last decided about connections to it. */
export function useResourceAccessUses(id: string, enabled = true) {
  return useQuery({
    queryKey: keys.access.usesOfResource(id),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/access/uses", { signal, params: { path: { id } } })),
    enabled,
    staleTime: usesFresh,
  });
}

/** usePastAccess reads who could reach the resource at an instant; nothing without one. */
export function usePastAccess(id: string, at: string | undefined) {
  return useQuery({
    queryKey: keys.access.past(id, at),
    queryFn: ({ signal }) => asJSON(unwrap(client.GET("/resources/{id}/past-access", { signal, params: { path: { id }, query: { at: at ?? "" } } }))),
    enabled: at !== undefined,
  });
}

/** useAccessPeriods reads when an application could reach a resource; nothing without both. */
export function useAccessPeriods(resource: string, application: string) {
  return useQuery({
    queryKey: keys.access.periods(resource, application),
    queryFn: ({ signal }) => asJSON(unwrap(client.GET("/resources/{id}/access-periods", { signal, params: { path: { id: resource }, query: { application } } }))),
    enabled: resource !== "" && application !== "",
  });
}

/** useModeHistory reads the changes of the mode of a resource. */
export function useModeHistory(id: string) {
  return useQuery({
    queryKey: keys.access.modes(id),
    queryFn: ({ signal }) => asJSON(unwrap(client.GET("/resources/{id}/mode-history", { signal, params: { path: { id } } }))),
  });
}

/** connectionsInterval is the interval in milliseconds at which connections are read. No event reports them, so they are polled. */
const connectionsInterval = 10_000;

/** refused contains the decisions of refused connections. */
export const refused: Decision[] = ["denied", "default-denied"];

/** applicationConnections returns the options of the query for an application's connections, for callers that read several applications at once. */
export function applicationConnections(id: string, decision?: Decision[]) {
  return {
    queryKey: keys.connections.ofApplication(id, decision ?? []),
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      unwrap(client.GET("/applications/{id}/connections", { signal, params: { path: { id }, query: { decision } } })),
    refetchInterval: connectionsInterval,
  };
}

/** useApplicationConnections reads the connections of an application, and again every 10 s. */
export function useApplicationConnections(id: string, decision?: Decision[], enabled = true) {
  return useQuery({ ...applicationConnections(id, decision), enabled: enabled && id !== "" });
}

/** useResourceConnections reads the connections to a resource, and again every 10 s. */
export function useResourceConnections(id: string, decision?: Decision[]) {
  return useQuery({
    queryKey: keys.connections.ofResource(id, decision ?? []),
    queryFn: ({ signal }) => unwrap(client.GET("/resources/{id}/connections", { signal, params: { path: { id }, query: { decision } } })),
    refetchInterval: connectionsInterval,
  });
}

/** useWorkloads reads the external workloads of an application, in pages of 50. */
export function useWorkloads(application: string) {
  return useInfiniteQuery({
    queryKey: keys.workload.ofApplication(application),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/workloads", { signal, params: { query: { application, limit: 50, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    enabled: application !== "",
  });
}

/** useClasses reads all resource classes and subject classes. */
export function useClasses(enabled = true) {
  return useQuery({ queryKey: keys.class.list, queryFn: ({ signal }) => unwrap(client.GET("/classes", { signal })), enabled });
}

/** useApprovalPolicies reads all approval policies, without their YAML. */
export function useApprovalPolicies(enabled = true) {
  return useQuery({ queryKey: keys.approvalPolicy.list, queryFn: ({ signal }) => unwrap(client.GET("/approval-policies", { signal })), enabled });
}

/** TicketView selects which tickets of the person are listed, or all that they may see. */
export type TicketView = "mine" | "approvals" | "decided" | "review" | "owned" | "all";

/** TicketFilter selects the tickets of a list. */
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
  sort?: TicketOrder;
}

/** useTickets reads the tickets that match the filter. While the event stream is lost, it reads them every 5 s. */
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

/** useTicket reads one ticket. While the event stream is lost, it reads it every 5 s. */
export function useTicket(id: string) {
  return useQuery({
    queryKey: keys.ticket.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/tickets/{id}", { signal, params: { path: { id } } })),
    enabled: id !== "",
    refetchInterval: useFallback(),
  });
}

/** useTicketChange reads the objects that a ticket changes. */
export function useTicketChange(id: string) {
  return useQuery({
    queryKey: keys.ticket.change(id),
    queryFn: ({ signal }) => unwrap(client.GET("/tickets/{id}/change", { signal, params: { path: { id } } })),
    staleTime: 30_000,
  });
}

/** useTicketLedger reads the ledger lines of a ticket, oldest first. */
export function useTicketLedger(id: string) {
  return useInfiniteQuery({
    queryKey: keys.ticket.ledger(id),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/tickets/{id}/ledger", { signal, params: { path: { id }, query: { cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    staleTime: 30_000,
  });
}

/** usePreview reads the preview of a request. Nothing is read while the request is undefined, because it is not complete enough. */
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
