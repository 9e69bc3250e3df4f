import { Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import type { ProposalLine } from "../../api/types";
import { adoptBody, leftOut, lineKey } from "../../lib/proposal";
import { basketLimit, durationError, durationSeconds, textLimit } from "../../lib/request";
import type { DurationValue } from "../../lib/request";
import { usePlan } from "../../lib/use-plan";
import { useSend } from "../../lib/use-send";
import { useWords } from "../../lib/use-words";
import { DurationField } from "../DurationField";
import { Notice } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { PlannedDeciders } from "../PlannedDeciders";
import tables from "../Tables.module.css";

interface Props {
  resource: { id: string; title: string };
  lines: ProposalLine[];
  onClose: () => void;
}

/** AdoptDialog requests access for all selected lines of a proposal, so that observed clients keep their access. */
export function AdoptDialog({ resource, lines, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const navigate = useNavigate();
  const [duration, setDuration] = useState<DurationValue>({ duration: "revoked", customAmount: 12, customUnit: "hours" });
  const [reason, setReason] = useState("");
  const [tried, setTried] = useState(false);
  const { send, create } = useSend();
  const body = adoptBody(resource.id, lines, durationSeconds(duration));
  const { query } = usePlan(durationError(duration) ? undefined : body);
  const cap = query.data?.maxDurationSeconds;
  const wrong = durationError(duration, cap);
  // The preview reports the maximum duration, so it is shown before the form is submitted.
  const capped = wrong === "cap" ? t("request.error.cap", { duration: words.duration(cap) }) : undefined;
  const over = leftOut(lines);

  const submit = () => {
    setTried(true);
    if (wrong || body === undefined || reason.trim() === "") return false;
    send({ ...body, reason: reason.trim() }, (ticket) => {
      onClose();
      void navigate(`/tickets/${ticket.id}`);
    });
    return true;
  };

  return (
    <FormDialog
      title={t("proposal.adoptTitle", { count: body?.items.length ?? 0, resource: resource.title })}
      size="lg"
      testId="adopt-dialog"
      submit={{ label: t("proposal.ask"), testId: "adopt-confirm", onSubmit: submit }}
      pending={create.isPending}
      error={create.error ?? query.error}
      values={{ duration, reason }}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("proposal.adoptText")}</Text>
          <ul style={{ margin: 0, paddingInlineStart: 18, maxHeight: 180, overflowY: "auto" }}>
            {lines.map((line) => (
              <li key={lineKey(line)}>
                {line.subject.title} <code className={tables.code}>{line.action}</code>
              </li>
            ))}
          </ul>
          {over > 0 && <Notice>{t("proposal.tooMany", { count: over, limit: basketLimit })}</Notice>}
          <DurationField value={duration} onChange={setDuration} limited={cap !== undefined} error={capped ?? (tried && wrong ? t("request.error.duration") : undefined) ?? fieldError("durationSeconds")} />
          <Textarea
            label={t("request.reason")}
            description={t("proposal.reasonHint")}
            required
            autosize
            minRows={2}
            maxLength={textLimit}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={tried && reason.trim() === "" ? t("decide.reasonNeeded") : fieldError("reason")}
            data-autofocus
            data-testid="adopt-reason"
          />
          {!capped && <PlannedDeciders items={query.data?.items ?? []} />}
        </>
      )}
    </FormDialog>
  );
}
