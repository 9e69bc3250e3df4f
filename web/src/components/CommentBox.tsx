import { Button, Group, Textarea } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { textLimit } from "../lib/request";
import type { TicketComment } from "../lib/use-ticket-comment";
import { ErrorState } from "./Feedback";

/** CommentBox comments on the ticket without deciding. */
export function CommentBox({ comment: { text, setText, send, pending, error } }: { comment: TicketComment }) {
  const { t } = useTranslation();
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      data-testid="comment-box"
    >
      <Textarea aria-label={t("comment.label")} placeholder={t("comment.placeholder")} value={text} onChange={(event) => setText(event.currentTarget.value)} maxLength={textLimit} autosize minRows={1} maxRows={8} data-testid="comment-text" />
      {error ? <ErrorState error={error} title={t("error.actionTitle")} /> : null}
      {text.trim() !== "" && (
        <Group mt={8} justify="flex-end">
          <Button type="submit" size="xs" variant="default" loading={pending} data-testid="comment-send">
            {t("comment.send")}
          </Button>
        </Group>
      )}
    </form>
  );
}
