/** Writes: each puts the server's answer into the cache, so that the view never shows what was before. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { NewTicket, Ticket } from "./types";

function useStored() {
  const cache = useQueryClient();
  return (ticket: Ticket) => {
    cache.setQueryData(["ticket", ticket.id], ticket);
    void cache.invalidateQueries({ queryKey: ["ticket", "list"] });
    void cache.invalidateQueries({ queryKey: ["me"] });
    void cache.invalidateQueries({ queryKey: ["access"] });
  };
}

/** A refusal as stale means that the cached ticket is old: read it again so that the person sees what changed. */
function useRefresh(id: string) {
  const cache = useQueryClient();
  return () => void cache.invalidateQueries({ queryKey: ["ticket", id] });
}

export function useCreateTicket() {
  return useMutation({
    mutationFn: ({ body, key }: { body: NewTicket; key: string }) =>
      unwrap(client.POST("/tickets", { body, params: { header: { "Idempotency-Key": key } } })),
    onSuccess: useStored(),
  });
}

export function useDecide(id: string) {
  return useMutation({
    mutationFn: (body: { decision: "approve" | "reject"; version: number; comment?: string }) =>
      unwrap(client.POST("/tickets/{id}/decision", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

export function useWithdraw(id: string) {
  return useMutation({
    mutationFn: (reason: string) => unwrap(client.POST("/tickets/{id}/withdraw", { params: { path: { id } }, body: { reason } })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

export function useRevoke(id: string) {
  return useMutation({
    mutationFn: (reason: string) => unwrap(client.POST("/tickets/{id}/revoke", { params: { path: { id } }, body: { reason } })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}
