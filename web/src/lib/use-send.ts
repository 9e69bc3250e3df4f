/** Sends a new request. The same content keeps its key, so that a retry after a lost answer does not ask twice. */
import { useRef } from "react";
import { useCreateTicket } from "../api/mutations";
import type { NewTicket, Ticket } from "../api/types";
import { randomKey } from "./names";

export function useSend() {
  const create = useCreateTicket();
  const last = useRef<{ content: string; key: string }>(undefined);
  const send = (body: NewTicket, onSent: (ticket: Ticket) => void) => {
    const content = JSON.stringify(body);
    if (last.current?.content !== content) last.current = { content, key: randomKey() };
    create.mutate({ body, key: last.current.key }, { onSuccess: onSent });
  };
  return { send, create };
}
