import { Button, Group, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useComment } from "../api/mutations";
import { textLimit } from "../lib/request";
import { ErrorState } from "./Feedback";

/** CommentBox comments on the ticket without deciding. */
export function CommentBox({ id }: { id: string }) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const say = useComment(id);
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") say.mutate(text.trim(), { onSuccess: () => setText("") });
      }}
      data-testid="comment-box"
    >
      <Textarea aria-label={t("comment.label")} placeholder={t("comment.placeholder")} value={text} onChange={(event) => setText(event.currentTarget.value)} maxLength={textLimit} autosize minRows={1} maxRows={8} data-testid="comment-text" />
      {say.error ? <ErrorState error={say.error} title={t("error.actionTitle")} /> : null}
      {text.trim() !== "" && (
        <Group mt={8} justify="flex-end">
          <Button type="submit" size="xs" variant="default" loading={say.isPending} data-testid="comment-send">
            {t("comment.send")}
          </Button>
        </Group>
      )}
    </form>
  );
}
