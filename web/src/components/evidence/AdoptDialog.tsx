import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { asApiError } from "../../api/client";
import type { ProposalLine } from "../../api/types";
import { adoptBody, leftOut, lineKey } from "../../lib/proposal";
import { byChain } from "../../lib/items";
import { basketLimit, durationError, durationSeconds, textLimit } from "../../lib/request";
import type { DurationValue } from "../../lib/request";
import { usePlan } from "../../lib/use-plan";
import { useSend } from "../../lib/use-send";
import { useWords } from "../../lib/use-words";
import { Deciders } from "../Deciders";
import { DurationField } from "../DurationField";
import { ErrorState, Notice } from "../Feedback";
import tables from "../Tables.module.css";

interface Props {
  resource: { id: string; title: string };
  lines: ProposalLine[];
  onClose: () => void;
}

/** One request for all that was chosen: those who connect already may stay. */
export function AdoptDialog({ resource, lines, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const navigate = useNavigate();
  const [duration, setDuration] = useState<DurationValue>({ duration: "revoked", customAmount: 12, customUnit: "hours" });
  const [reason, setReason] = useState("");
  const [tried, setTried] = useState(false);
  const { send, create } = useSend();
  const wrong = durationError(duration);
  const body = adoptBody(resource.id, lines, durationSeconds(duration));
  const { query } = usePlan(wrong ? undefined : body);
  const over = leftOut(lines);
  const refusal = create.error ?? query.error;
  const atField = refusal ? asApiError(refusal).fieldMessage("durationSeconds") : undefined;
  const problems = (query.data?.items ?? []).flatMap((item) => (item.problem ? [item.problem.fields?.[0]?.message ?? item.problem.detail ?? item.problem.title] : []));
  const chains = byChain((query.data?.items ?? []).filter((item) => !item.problem));

  const submit = () => {
    setTried(true);
    if (wrong || body === undefined || reason.trim() === "") return;
    send({ ...body, reason: reason.trim() }, (ticket) => {
      onClose();
      void navigate(`/tickets/${ticket.id}`);
    });
  };

  return (
    <Modal opened onClose={onClose} size="lg" title={<Text fw={620}>{t("proposal.adoptTitle", { count: body?.items.length ?? 0, resource: resource.title })}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        data-testid="adopt-dialog"
      >
        <Stack gap="md">
          <Text size="sm">{t("proposal.adoptText")}</Text>
          <ul style={{ margin: 0, paddingInlineStart: 18, maxHeight: 180, overflowY: "auto" }}>
            {lines.map((line) => (
              <li key={lineKey(line)}>
                {line.subject.title} <code className={tables.code}>{line.action}</code>
              </li>
            ))}
          </ul>
          {over > 0 && <Notice>{t("proposal.tooMany", { count: over, limit: basketLimit })}</Notice>}
          <DurationField value={duration} onChange={setDuration} error={(tried && wrong ? t("request.error.duration") : undefined) ?? (atField && words.said(atField))} />
          <Textarea
            label={t("request.reason")}
            description={t("proposal.reasonHint")}
            required
            autosize
            minRows={2}
            maxLength={textLimit}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={tried && reason.trim() === "" ? t("decide.reasonNeeded") : undefined}
            data-autofocus
            data-testid="adopt-reason"
          />
          {[...new Set(problems)].map((problem) => (
            <Notice key={problem}>{words.said(problem)}</Notice>
          ))}
          {chains.length > 0 && (
            <div>
              <Text size="xs" c="dimmed" fw={560} mb={6}>{t("request.preview.deciders")}</Text>
              {chains.map((chain) => (
                <Deciders key={chain.items.map((item) => item.position).join()} steps={chain.steps} />
              ))}
            </div>
          )}
          {refusal && !atField ? <ErrorState error={refusal} title={t("error.actionTitle")} /> : null}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" loading={create.isPending} data-testid="adopt-confirm">
              {t("proposal.ask")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
