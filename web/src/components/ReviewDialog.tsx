import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useReview } from "../api/mutations";
import type { Ticket } from "../api/types";
import { itemsThatMay } from "../lib/items";
import { textLimit } from "../lib/request";
import { ErrorState } from "./Feedback";
import { Sentences } from "./Sentence";
import { useToast } from "./toast-context";

/** The look afterwards at what went through broken glass: it was right, or it ends now. */
export function ReviewDialog({ ticket, item, onClose }: { ticket: Ticket; item?: number | undefined; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const review = useReview(ticket.id);
  const [comment, setComment] = useState("");
  const [missing, setMissing] = useState(false);
  const items = itemsThatMay(ticket, "review").filter((each) => item === undefined || each.position === item);

  const send = (confirm: boolean) => {
    const text = comment.trim();
    setMissing(!confirm && text === "");
    if (!confirm && text === "") return;
    review.mutate({ confirm, item, ...(text ? { comment: text } : {}) }, {
      onSuccess: () => {
        toast(t(confirm ? "review.done.confirm" : "review.done.end", { id: ticket.id }));
        onClose();
      },
    });
  };
  const busy = (confirm: boolean) => review.isPending && review.variables.confirm === confirm;

  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{t("review.title", { id: ticket.id })}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <Stack gap="md" data-testid="review-dialog">
        <div>
          <Text size="sm" c="dimmed" mb={6}>{t("review.text", { name: ticket.requester.displayName })}</Text>
          <Sentences items={items} kind={ticket.kind} />
        </div>
        <Textarea
          label={t("decide.comment")}
          description={t("review.commentHint")}
          value={comment}
          onChange={(event) => setComment(event.currentTarget.value)}
          error={missing ? t("decide.rejectNeedsComment", { name: ticket.requester.displayName }) : undefined}
          maxLength={textLimit}
          autosize
          minRows={2}
          data-autofocus
          data-testid="review-comment"
        />
        {review.error ? <ErrorState error={review.error} title={t("error.actionTitle")} /> : null}
        <Group justify="flex-end" gap="sm">
          <Button variant="outline" color="red" onClick={() => send(false)} loading={busy(false)} disabled={review.isPending} data-testid="review-end">
            {t("review.end")}
          </Button>
          <Button onClick={() => send(true)} loading={busy(true)} disabled={review.isPending} data-testid="review-confirm">
            {t("review.confirm")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
