/** Writes: each puts the server's answer into the cache, so that the view never shows what was before. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { BulkDecision, NewTicket, Ticket } from "./types";

function useStored() {
  const cache = useQueryClient();
  return (ticket: Ticket) => {
    cache.setQueryData(["ticket", ticket.id], ticket);
    // Read again all the same: what followed at once may have been hinted at before this answer was here to be refreshed.
    void cache.invalidateQueries({ queryKey: ["ticket", ticket.id] });
    void cache.invalidateQueries({ queryKey: ["ticket", "list"] });
    void cache.invalidateQueries({ queryKey: ["home"] });
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

/** Of a ticket's items: absent means every item that the operation can be done with. */
interface OfItem {
  item?: number | undefined;
}

interface Decided extends OfItem {
  decision: "approve" | "reject";
  version: number;
  comment?: string;
}

export function useDecide(id: string) {
  return useMutation({
    mutationFn: (body: Decided) => unwrap(client.POST("/tickets/{id}/decision", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

/** One decision for many tickets. Each has its own result, so none of them is known to be as the cache has it. */
export function useDecideMany() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: BulkDecision) => unwrap(client.POST("/tickets/decisions", { body })),
    onSettled: () => {
      for (const key of ["ticket", "home", "me", "access"]) void cache.invalidateQueries({ queryKey: [key] });
    },
  });
}

interface Reasoned extends OfItem {
  reason: string;
}

export function useWithdraw(id: string) {
  return useMutation({
    mutationFn: (body: Reasoned) => unwrap(client.POST("/tickets/{id}/withdraw", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

export function useRevoke(id: string) {
  return useMutation({
    mutationFn: (body: Reasoned) => unwrap(client.POST("/tickets/{id}/revoke", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

export function useComment(id: string) {
  return useMutation({
    mutationFn: (comment: string) => unwrap(client.POST("/tickets/{id}/comments", { params: { path: { id } }, body: { comment } })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

interface Reviewed extends OfItem {
  confirm: boolean;
  comment?: string;
}

export function useReview(id: string) {
  return useMutation({
    mutationFn: (body: Reviewed) => unwrap(client.POST("/tickets/{id}/review", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}
