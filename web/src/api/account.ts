/** Requests about the signed-in person: notifications (and undelivered ones), preferences, tokens, sessions, delegations, device logins. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, settled, unwrap } from "./client";
import { useReread } from "./use-reread";
import type { NewDelegation, NewToken, Preferences } from "./types";
import { keys } from "./keys";

/** useInbox reads the notifications of the person that match the filter, and again every 30 s. */
export function useInbox(filter: { unread?: boolean; limit?: number }, enabled = true) {
  return useInfiniteQuery({
    queryKey: keys.inbox.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/me/inbox", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    enabled,
    refetchInterval: 30_000,
  });
}

/** useMarkInbox returns the mutation that marks notifications as read or unread. Without ids it marks all of them. */
export function useMarkInbox() {
  return useMutation({
    mutationFn: (body: { ids?: string[]; read: boolean }) => settled(client.POST("/me/inbox", { body })),
    onSettled: useReread(keys.inbox.all, keys.me),
  });
}

/** useUndelivered reads notifications that could not be delivered, for the security team and auditors. */
export function useUndelivered() {
  return useInfiniteQuery({
    queryKey: keys.undelivered,
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/notifications/undelivered", { signal, params: { query: { cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
  });
}

/** useRetryUndelivered returns the mutation that delivers notifications again. Without ids it delivers all of them. */
export function useRetryUndelivered() {
  return useMutation({
    mutationFn: (ids: string[] | undefined) => unwrap(client.POST("/notifications/undelivered", { body: ids ? { ids } : {} })),
    onSettled: useReread(keys.undelivered),
  });
}

/** usePreferences reads the person's preferences: language, time zone and notification channels. */
export function usePreferences() {
  return useQuery({ queryKey: keys.preferences, queryFn: ({ signal }) => unwrap(client.GET("/me/preferences", { signal })) });
}

/** usePutPreferences returns the mutation that stores the person's preferences. */
export function usePutPreferences() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: Preferences) => unwrap(client.PUT("/me/preferences", { body })),
    onSuccess: async (stored) => {
      cache.setQueryData(keys.preferences, stored);
      // Titles of notifications are in the person's language.
      await Promise.all([cache.invalidateQueries({ queryKey: keys.me }), cache.invalidateQueries({ queryKey: keys.inbox.all })]);
    },
  });
}

/** useTokens reads the person's tokens, without their secrets. */
export function useTokens() {
  return useQuery({ queryKey: keys.tokens, queryFn: ({ signal }) => unwrap(client.GET("/me/tokens", { signal })) });
}

/** useCreateToken returns the mutation that creates a token. Its answer is the only place that has the secret. */
export function useCreateToken() {
  return useMutation({
    mutationFn: ({ body, key }: { body: NewToken; key: string }) => unwrap(client.POST("/me/tokens", { body, params: { header: { "Idempotency-Key": key } } })),
    // The secret is in the answer and nowhere else: it must not stay in memory once the dialog is closed.
    gcTime: 0,
    onSuccess: useReread(keys.tokens),
  });
}

/** useRevokeToken returns the mutation that revokes a token. */
export function useRevokeToken() {
  return useMutation({
    mutationFn: (id: string) => settled(client.DELETE("/me/tokens/{id}", { params: { path: { id } } })),
    onSettled: useReread(keys.tokens),
  });
}

/** useSessions reads the person's sessions. */
export function useSessions() {
  return useQuery({ queryKey: keys.sessions, queryFn: ({ signal }) => unwrap(client.GET("/me/sessions", { signal })) });
}

/** useEndOtherSessions returns the mutation that ends all sessions of the person except this one. */
export function useEndOtherSessions() {
  return useMutation({ mutationFn: () => settled(client.DELETE("/me/sessions")), onSettled: useReread(keys.sessions) });
}

/** useDelegations reads the person's delegations, or with `all` those of everybody. */
export function useDelegations(all: boolean) {
  return useInfiniteQuery({
    queryKey: keys.delegation.list(all),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/delegations", { signal, params: { query: { ...(all ? { all } : {}), cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
  });
}

/** useDelegate returns the mutation that creates a delegation. */
export function useDelegate() {
  return useMutation({
    mutationFn: ({ body, key }: { body: NewDelegation; key: string }) => unwrap(client.POST("/delegations", { body, params: { header: { "Idempotency-Key": key } } })),
    onSuccess: useReread(keys.delegation.all),
  });
}

/** useEndDelegation returns the mutation that ends a delegation. */
export function useEndDelegation() {
  return useMutation({
    mutationFn: (id: string) => settled(client.DELETE("/delegations/{id}", { params: { path: { id } } })),
    onSettled: useReread(keys.delegation.all, keys.me),
  });
}

/** useDevice reads the device login with a user code. Each call counts towards the limit of attempts, so it is made once. */
export function useDevice(userCode: string) {
  return useQuery({
    queryKey: keys.device(userCode),
    queryFn: ({ signal }) => unwrap(client.GET("/auth/device", { signal, params: { query: { userCode } } })),
    enabled: userCode !== "",
    retry: false,
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
}

/** useDecideDevice returns the mutation that approves or denies a device login. */
export function useDecideDevice() {
  return useMutation({
    mutationFn: (body: { userCode: string; deny: boolean }) => settled(client.POST("/auth/device/approve", { body })),
    onSuccess: useReread(keys.tokens),
  });
}
