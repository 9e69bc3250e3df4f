/** Writes: each puts the server's answer into the cache, so that the view never shows what was before. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { BulkDecision, BulkResult, NewTicket, Ticket } from "./types";
import { useBatches } from "./batches";
import { keys } from "./keys";
import { useReread } from "./use-reread";

/** useStored returns a function that stores the ticket of an answer in the cache, and reads again what depends on it. */
function useStored() {
  const cache = useQueryClient();
  return (ticket: Ticket) => {
    cache.setQueryData(keys.ticket.one(ticket.id), ticket);
    // Read again all the same: what followed at once may have been hinted at before this answer was here to be refreshed.
    void cache.invalidateQueries({ queryKey: keys.ticket.one(ticket.id) });
    void cache.invalidateQueries({ queryKey: keys.ticket.lists });
    void cache.invalidateQueries({ queryKey: keys.home });
    void cache.invalidateQueries({ queryKey: keys.me });
    void cache.invalidateQueries({ queryKey: keys.access.all });
  };
}

/** useRefresh returns a function that reads the ticket again, so that the person sees what changed after a refusal as stale. */
function useRefresh(id: string) {
  const cache = useQueryClient();
  return () => void cache.invalidateQueries({ queryKey: keys.ticket.one(id) });
}

/** useCreateTicket returns the mutation that submits a request. A repeated key does not create a second ticket. */
export function useCreateTicket() {
  return useMutation({
    mutationFn: ({ body, key }: { body: NewTicket; key: string }) =>
      unwrap(client.POST("/tickets", { body, params: { header: { "Idempotency-Key": key } } })),
    onSuccess: useStored(),
  });
}

/** useCreateTickets returns the mutation that submits several requests, one after the other, each with a key of its own. */
export function useCreateTickets() {
  return useBatches<{ body: NewTicket; key: string }, Ticket>(1, useReread(keys.ticket.all, keys.home, keys.me, keys.access.all, keys.proposals));
}

/** createTickets submits requests and returns their tickets. */
export const createTickets = (parts: readonly { body: NewTicket; key: string }[]): Promise<Ticket[]> =>
  Promise.all(parts.map(({ body, key }) => unwrap(client.POST("/tickets", { body, params: { header: { "Idempotency-Key": key } } }))));

/** OfItem is the position of an item of a ticket; absent means every item that the operation can be done with. */
interface OfItem {
  item?: number | undefined;
}

interface Decided extends OfItem {
  decision: "approve" | "reject";
  version: number;
  comment?: string;
}

/** useDecide returns the mutation that approves or rejects items of a ticket. */
export function useDecide(id: string) {
  return useMutation({
    mutationFn: (body: Decided) => unwrap(client.POST("/tickets/{id}/decision", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

/** ticketsAtOnce is the maximum number of tickets that the server decides in one call. */
export const ticketsAtOnce = 100;

/** decideTickets makes one decision about at most `ticketsAtOnce` tickets, and returns the result of each. */
export const decideTickets = async (body: BulkDecision): Promise<BulkResult["items"]> => (await unwrap(client.POST("/tickets/decisions", { body }))).items;

/** useDecideMany returns the mutation that decides any number of tickets. Each ticket has its own result, so all tickets are read again afterwards. */
export function useDecideMany() {
  return useBatches<BulkDecision["items"][number], BulkResult["items"][number]>(ticketsAtOnce, useReread(keys.ticket.all, keys.home, keys.me, keys.access.all));
}

interface Reasoned extends OfItem {
  reason: string;
}

/** useWithdraw returns the mutation that withdraws items of a ticket. */
export function useWithdraw(id: string) {
  return useMutation({
    mutationFn: (body: Reasoned) => unwrap(client.POST("/tickets/{id}/withdraw", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

/** useRevoke returns the mutation that revokes items of a ticket. */
export function useRevoke(id: string) {
  return useMutation({
    mutationFn: (body: Reasoned) => unwrap(client.POST("/tickets/{id}/revoke", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

/** useComment returns the mutation that adds a comment to a ticket. A repeated key does not add it twice. */
export function useComment(id: string) {
  return useMutation({
    mutationFn: ({ comment, key }: { comment: string; key: string }) =>
      unwrap(client.POST("/tickets/{id}/comments", { params: { path: { id }, header: { "Idempotency-Key": key } }, body: { comment } })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}

interface Reviewed extends OfItem {
  confirm: boolean;
  comment?: string;
}

/** useReviewBreakGlass returns the mutation with which a reviewer confirms or ends access that was granted by break-glass. */
export function useReviewBreakGlass(id: string) {
  return useMutation({
    mutationFn: (body: Reviewed) => unwrap(client.POST("/tickets/{id}/review", { params: { path: { id } }, body })),
    onSuccess: useStored(),
    onError: useRefresh(id),
  });
}
