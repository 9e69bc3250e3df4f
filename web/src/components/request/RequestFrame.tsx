import { Button, Group, Stack, Textarea } from "@mantine/core";
import { useRef } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { asApiError } from "../../api/client";
import { clearDraft } from "../../lib/draft";
import { focusFirstError } from "../../lib/focus-first-error";
import { reasonError, textLimit } from "../../lib/request";
import { useWords } from "../../lib/use-words";
import { ErrorState } from "../Feedback";
import classes from "./Request.module.css";

interface Props {
  children: ReactNode;
  aside: ReactNode;
  /** Shown next to the submit button. */
  extra?: ReactNode;
  restored: boolean;
  reason: string;
  onReason: (reason: string) => void;
  tried: boolean;
  /** Sends the request. Returns false if a field is wrong; the focus then moves to the first wrong field. */
  onSubmit: () => boolean;
  sending: boolean;
  error: unknown;
  /** atField reports whether a field already shows the error. */
  atField: boolean;
  submitLabel?: string;
  reasonHint?: string;
}

/** RequestFrame contains the parts of every request form: the reason, the submit button, the server's problem, and the preview on the right. */
export function RequestFrame({ children, aside, extra, restored, reason, onReason, tried, onSubmit, sending, error, atField, submitLabel, reasonHint }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const form = useRef<HTMLFormElement>(null);
  const refusal = error ? asApiError(error) : undefined;
  const wrong = tried ? reasonError(reason) : undefined;
  const refusedReason = refusal?.fieldMessage("reason");
  const message = wrong === "long" ? t("request.error.reasonLong", { count: textLimit }) : wrong ? t("request.error.reason") : refusedReason && words.message(refusedReason);

  return (
    <div className={classes.layout}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (onSubmit()) return;
          // The errors are rendered in the next frame.
          requestAnimationFrame(() => focusFirstError(form.current));
        }}
        data-testid="request-form"
      >
        <Stack gap="lg">
          {restored && <p className={classes.muted} role="status" data-testid="draft-restored">{t("request.restored")}</p>}
          {children}
          <Textarea
            label={t("request.reason")}
            description={reasonHint ?? t("request.reasonHint")}
            required
            autosize
            minRows={3}
            maxLength={textLimit}
            value={reason}
            onChange={(event) => onReason(event.currentTarget.value)}
            error={message}
            data-testid="request-reason"
          />
          {refusal && !atField && refusedReason === undefined && (
            <div>
              <ErrorState error={refusal} title={t("error.actionTitle")} />
              {refusal.problem?.ticket && <Link to={`/tickets/${refusal.problem.ticket}`}>{t("request.openDuplicate")}</Link>}
            </div>
          )}
          <Group>
            <Button type="submit" loading={sending} data-testid="submit-request">
              {submitLabel ?? t("request.submit")}
            </Button>
            <Button component={Link} to="/requests" onClick={clearDraft} variant="subtle" color="gray">
              {t("action.cancel")}
            </Button>
            {extra}
          </Group>
        </Stack>
      </form>
      {aside}
    </div>
  );
}
