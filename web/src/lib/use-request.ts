import { useState } from "react";
import { useNavigate } from "react-router";
import { clearDraft } from "./draft";
import { reasonError } from "./request";
import type { Draftable } from "./request";
import { useSend } from "./use-send";

/** useRequest returns a function that submits a request. After the submission it discards the draft and opens the ticket. */
export function useRequest() {
  const navigate = useNavigate();
  const [tried, setTried] = useState(false);
  const { send, create } = useSend();

  /** False when there is nothing to send yet. */
  const submit = (body: Draftable | undefined, reason: string, onSent?: () => void): boolean => {
    setTried(true);
    if (body === undefined || reasonError(reason)) return false;
    send({ ...body, reason: reason.trim() }, (ticket) => {
      onSent?.();
      clearDraft();
      void navigate(`/tickets/${ticket.id}`);
    });
    return true;
  };
  return { tried, submit, sending: create.isPending, error: create.error };
}
