import { useCreateTicket } from "../api/mutations";
import type { NewTicket, Ticket } from "../api/types";
import { useKey } from "./use-key";

/**
 * useSend returns a function that sends a new request, and the state of the call. The same content keeps its key, so that a retry after a lost answer
 * does not create a second ticket.
 */
export function useSend() {
  const create = useCreateTicket();
  const keyOf = useKey();
  const send = (body: NewTicket, onSent: (ticket: Ticket) => void) => create.mutate({ body, key: keyOf(body) }, { onSuccess: onSent });
  return { send, create };
}
