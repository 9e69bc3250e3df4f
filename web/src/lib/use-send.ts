/** Sends a new request. The same content keeps its key, so that a retry after a lost answer does not ask twice. */
import { useCreateTicket } from "../api/mutations";
import type { NewTicket, Ticket } from "../api/types";
import { useKey } from "./use-key";

export function useSend() {
  const create = useCreateTicket();
  const keyOf = useKey();
  const send = (body: NewTicket, onSent: (ticket: Ticket) => void) => create.mutate({ body, key: keyOf(body) }, { onSuccess: onSent });
  return { send, create };
}
