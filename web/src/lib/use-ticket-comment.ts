import { useState } from "react";
import { useComment } from "../api/mutations";
import type { Ticket } from "../api/types";
import { clearComment } from "./comment-draft";
import { useKey } from "./use-key";
import { useTypedComment } from "./use-kept-comment";

/**
 * useTicketComment returns the comment that is being typed about a ticket, and a function that adds it to the ticket. The same text keeps its key until it
 * was added, so that a retry after a lost answer does not add it twice; afterwards the same text is a new comment.
 */
export function useTicketComment(ticket: string) {
  const { comment: text, setComment: setText } = useTypedComment(ticket);
  const say = useComment(ticket);
  const keyOf = useKey();
  const [added, setAdded] = useState(0);
  const send = (onAdded?: (ticket: Ticket) => void) => {
    const comment = text.trim();
    if (comment === "") return;
    say.mutate({ comment, key: keyOf([added, comment]) }, {
      onSuccess: (answer) => {
        setAdded((count) => count + 1);
        setText("");
        clearComment();
        onAdded?.(answer);
      },
    });
  };
  return { text, setText, send, pending: say.isPending, error: say.error };
}

/** TicketComment is the comment that is being typed about a ticket. */
export type TicketComment = ReturnType<typeof useTicketComment>;
