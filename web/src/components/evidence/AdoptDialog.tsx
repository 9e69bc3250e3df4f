import { Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import type { ProposalLine } from "../../api/types";
import { createTickets, useCreateTickets } from "../../api/mutations";
import { adoptBodies, lineKey } from "../../lib/proposal";
import { basketLimit, durationError, durationSeconds, textLimit } from "../../lib/request";
import type { DurationValue } from "../../lib/request";
import { usePlan } from "../../lib/use-plan";
import { useKey } from "../../lib/use-key";
import { useWords } from "../../lib/use-words";
import { DurationField } from "../DurationField";
import { Notice } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { PlannedDeciders } from "../PlannedDeciders";
import { SentProgress } from "../SentProgress";
import tables from "../Tables.module.css";
import { useToast } from "../toast-context";

interface Props {
  resource: { id: string; title: string };
  lines: ProposalLine[];
  onClose: () => void;
}

/** AdoptDialog requests access for all selected lines of a proposal, so that observed clients keep their access. Many clients need several requests. */
export function AdoptDialog({ resource, lines, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const navigate = useNavigate();
  const [duration, setDuration] = useState<DurationValue>({ duration: "revoked", customAmount: 12, customUnit: "hours" });
  const [reason, setReason] = useState("");
  const [tried, setTried] = useState(false);
  const toast = useToast();
  const create = useCreateTickets();
  const keyOf = useKey();
  const bodies = adoptBodies(resource.id, lines, durationSeconds(duration));
  const { query, isRequested } = usePlan(durationError(duration) ? undefined : bodies[0]);
  const cap = query.data?.maxDurationSeconds;
  const wrong = durationError(duration, cap);
  // The preview reports the maximum duration, so it is shown before the form is submitted.
  const capped = wrong === "cap" ? t("request.error.cap", { duration: words.duration(cap) }) : undefined;

  const submit = () => {
    setTried(true);
    if (wrong || bodies.length === 0 || reason.trim() === "") return false;
    const requests = bodies.map((body) => ({ ...body, reason: reason.trim() }));
    const key = keyOf(requests);
    create.send(
      { entries: requests.map((body, index) => ({ body, key: index === 0 ? key : `${key}-${index}` })), send: createTickets },
      {
        onSuccess: (tickets) => {
          onClose();
          const [only, ...more] = tickets;
          if (more.length > 0) toast(t("proposal.submitted", { count: tickets.length }));
          void navigate(only && more.length === 0 ? `/tickets/${only.id}` : "/requests");
        },
      },
    );
    return true;
  };

  return (
    <FormDialog
      title={t("proposal.adoptTitle", { count: bodies.reduce((sum, { items }) => sum + items.length, 0), resource: resource.title })}
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
          {bodies.length > 1 && <Notice testId="adopt-parts">{t("proposal.parts", { count: bodies.length, limit: basketLimit })}</Notice>}
          <SentProgress progress={create.progress} size={1} />
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
          {!capped && isRequested && !query.error && <PlannedDeciders query={query} />}
        </>
      )}
    </FormDialog>
  );
}
