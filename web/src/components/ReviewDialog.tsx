import { Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useReviewBreakGlass } from "../api/mutations";
import type { Ticket } from "../api/types";
import { itemsThatMay } from "../lib/items";
import { textLimit } from "../lib/request";
import type { KeptInput } from "../lib/use-kept-dialog";
import { FormDialog } from "./FormDialog";
import { ItemSentences } from "./ItemSentence";
import { useToast } from "./toast-context";

interface Props {
  ticket: Ticket;
  item?: number | undefined;
  /** The comment from before a login. */
  draft: string | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** ReviewDialog lets a reviewer confirm access that was granted by break-glass, or end it. */
export function ReviewDialog({ ticket, item, draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const toast = useToast();
  const review = useReviewBreakGlass(ticket.id);
  const [comment, setComment] = useState(draft ?? "");
  const [missing, setMissing] = useState(false);
  const items = itemsThatMay(ticket, "review").filter((each) => item === undefined || each.position === item);

  const send = (confirm: boolean) => {
    const text = comment.trim();
    setMissing(!confirm && text === "");
    if (!confirm && text === "") return false;
    review.mutate({ confirm, item, ...(text ? { comment: text } : {}) }, {
      onSuccess: () => {
        toast(t(confirm ? "review.done.confirm" : "review.done.end", { id: ticket.id }));
        onClose();
      },
    });
    return true;
  };

  return (
    <FormDialog
      title={t("review.title", { id: ticket.id })}
      testId="review-dialog"
      submit={{ label: t("review.confirm"), testId: "review-confirm", onSubmit: () => send(true) }}
      alternative={{ label: t("review.end"), danger: true, testId: "review-end", onSubmit: () => send(false) }}
      pending={review.isPending}
      error={review.error}
      values={comment}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <div>
            <Text size="sm" c="dimmed" mb={6}>{t("review.text", { name: ticket.requester.displayName })}</Text>
            <ItemSentences items={items} kind={ticket.kind} />
          </div>
          <Textarea
            label={t("decide.comment")}
            description={t("review.commentHint")}
            value={comment}
            onChange={(event) => setComment(event.currentTarget.value)}
            error={missing ? t("decide.rejectNeedsComment", { name: ticket.requester.displayName }) : fieldError("comment")}
            maxLength={textLimit}
            autosize
            minRows={2}
            data-autofocus
            data-testid="review-comment"
          />
        </>
      )}
    </FormDialog>
  );
}
