import { Text, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { usePreview } from "../api/queries";
import type { NewTicket } from "../api/types";
import { useSend } from "../lib/use-send";
import { durationError, durationSeconds, textLimit, usualDuration } from "../lib/request";
import { useWords } from "../lib/use-words";
import { Deciders } from "./Deciders";
import { DurationField } from "./DurationField";
import { RowsSkeleton } from "./Feedback";
import { FormDialog } from "./FormDialog";

/** Extendable is the grant to extend: the ticket, the position of its item, its heading and the reason of the ticket. */
export interface Extendable {
  ticket: string;
  item: number;
  heading: string;
  reason: string;
}

/** ExtendDialog requests a later end of a grant. An extension is a request like any other, so the dialog shows who will decide. */
export function ExtendDialog({ of, onClose }: { of: Extendable; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const navigate = useNavigate();
  const [duration, setDuration] = useState(usualDuration);
  const [reason, setReason] = useState(t("extend.reason", { reason: of.reason }).slice(0, textLimit));
  const [tried, setTried] = useState(false);
  const { send, create } = useSend();

  const seconds = durationSeconds(duration);
  const wrong = durationError(duration) ?? (seconds === undefined ? "range" : undefined);
  const body = (why: string): NewTicket => ({ kind: "extend", items: [{ target: { ticket: of.ticket, item: of.item } }], reason: why, durationSeconds: seconds });
  const [settled] = useDebouncedValue(wrong ? undefined : seconds, 200);
  const preview = usePreview(settled !== undefined && settled === seconds ? body("preview") : undefined);
  // The deciders of another duration may be others. The maximum duration is the same for every duration.
  const planned = preview.isPlaceholderData ? undefined : preview.data?.items[0];
  const cap = preview.data?.maxDurationSeconds;
  const capped = cap !== undefined && seconds !== undefined && seconds > cap ? t("request.error.cap", { duration: words.duration(cap) }) : undefined;

  const submit = () => {
    setTried(true);
    if (wrong || capped || reason.trim() === "") return false;
    send(body(reason.trim()), (ticket) => {
      onClose();
      void navigate(`/tickets/${ticket.id}`);
    });
    return true;
  };

  return (
    <FormDialog
      title={t("extend.title", { what: of.heading })}
      size="lg"
      testId="extend-dialog"
      submit={{ label: t("extend.submit"), testId: "extend-confirm", onSubmit: submit }}
      pending={create.isPending}
      error={create.error ?? preview.error}
      values={{ duration, reason }}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <DurationField value={duration} onChange={setDuration} limited error={(tried && wrong ? t("request.error.duration") : undefined) ?? capped ?? fieldError("durationSeconds")} />
          <Textarea
            label={t("request.reason")}
            description={t("extend.reasonHint")}
            required
            autosize
            minRows={2}
            maxLength={textLimit}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={tried && reason.trim() === "" ? t("decide.reasonNeeded") : fieldError("reason")}
            data-testid="extend-reason"
          />
          {!wrong && !preview.error && (
            <div>
              <Text size="xs" c="dimmed" fw={560} mb={6}>{t("request.preview.deciders")}</Text>
              {planned ? <Deciders steps={planned.steps} /> : <RowsSkeleton rows={1} />}
            </div>
          )}
        </>
      )}
    </FormDialog>
  );
}
