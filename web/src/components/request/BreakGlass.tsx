import { Button, Checkbox, SegmentedControl, Text } from "@mantine/core";
import { IconFlame } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Person } from "../../api/types";
import { atAnyHour } from "../../lib/request";
import type { Draftable } from "../../lib/request";
import { secondsPerHour } from "../../lib/time";
import { usePlan } from "../../lib/use-plan";
import { useWords } from "../../lib/use-words";
import { ErrorState, Notice, RowsSkeleton } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { PersonName } from "../Names";
import classes from "./Request.module.css";

const hours = [1, 2, 4, 8] as const;

interface DialogProps {
  body: Draftable;
  reason: string;
  /** Returns whether it was sent. */
  onSend: (body: Draftable) => boolean;
  sending: boolean;
  error: unknown;
  onClose: () => void;
}

/** Confirm shows what break-glass access does, how long it lasts and who reviews it afterwards, and requires a confirmation. */
function Confirm({ body, reason, onSend, sending, error, onClose }: DialogProps) {
  const { t } = useTranslation();
  const words = useWords();
  const [chosen, setChosen] = useState<number>(hours[0]);
  const [sure, setSure] = useState(false);
  const glass: Draftable = { ...atAnyHour(body), durationSeconds: chosen * secondsPerHour, breakGlass: true };
  const { query } = usePlan(glass);
  // The reviewers of another duration may be others.
  const current = query.isPlaceholderData ? undefined : query.data;
  const items = current?.items ?? [];
  const reviewers = new Map<string, Person>(items.flatMap((item) => (item.review?.approvers ?? []).map((person) => [person.id, person] as const)));
  const problem = items.find((item) => item.problem)?.problem;
  const cap = query.data?.maxDurationSeconds;

  return (
    <FormDialog
      title={t("glass.title")}
      size="lg"
      testId="glass-dialog"
      submit={{ label: t("glass.confirm"), danger: true, disabled: !sure || problem !== undefined, testId: "glass-confirm", onSubmit: () => onSend(glass) }}
      pending={sending}
      error={error}
      values={{ chosen, sure }}
      onClose={onClose}
    >
      {() => (
        <>
          <div className={classes.glass}>
            <p>{t("glass.text", { count: body.items.length })}</p>
            <p>{t("glass.reviewed")}</p>
          </div>
          <div>
            <Text size="sm" fw={540} mb={4}>{t("glass.hours")}</Text>
            <SegmentedControl
              aria-label={t("glass.hours")}
              data={hours.filter((each) => cap === undefined || each * secondsPerHour <= cap || each === hours[0]).map((each) => ({ value: String(each), label: words.duration(each * secondsPerHour) }))}
              value={String(chosen)}
              onChange={(value) => setChosen(Number(value))}
              data-testid="glass-hours"
            />
          </div>
          <div>
            <Text size="sm" fw={540}>{t("glass.reviewers")}</Text>
            {query.error ? <ErrorState error={query.error} onRetry={() => void query.refetch()} /> : current ? (
              <div className={classes.people} data-testid="glass-reviewers">
                {[...reviewers.values()].map((person) => (
                  <PersonName key={person.id} person={person} />
                ))}
              </div>
            ) : (
              <RowsSkeleton rows={1} />
            )}
            {problem && <Notice>{words.message(problem.message)}</Notice>}
          </div>
          <div>
            <Text size="sm" fw={540}>{t("request.reason")}</Text>
            <Text size="sm">{reason.trim()}</Text>
          </div>
          <Checkbox label={t("glass.sure")} checked={sure} onChange={(event) => setSure(event.currentTarget.checked)} data-testid="glass-sure" />
        </>
      )}
    </FormDialog>
  );
}

interface Props {
  /** Undefined until the request is complete. */
  body: Draftable | undefined;
  reason: string;
  offered: boolean;
  onSend: (body: Draftable) => boolean;
  sending: boolean;
  error: unknown;
}

/** BreakGlass offers break-glass access to the people that an approval policy names. It renders nothing for others. */
export function BreakGlass({ body, reason, offered, onSend, sending, error }: Props) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  if (!offered || body === undefined) return null;
  const ready = reason.trim() !== "";
  return (
    <>
      <Button variant="subtle" color="gray" ml="auto" leftSection={<IconFlame size={15} aria-hidden />} disabled={!ready} title={ready ? undefined : t("glass.reasonFirst")} onClick={() => setOpen(true)} data-testid="break-glass">
        {t("glass.open")}
      </Button>
      {open && <Confirm body={body} reason={reason} onSend={onSend} sending={sending} error={error} onClose={() => setOpen(false)} />}
    </>
  );
}
