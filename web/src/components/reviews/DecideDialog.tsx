import { NumberInput, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { decideLines, useDecideLines } from "../../api/reviews";
import type { ReviewDecision, ReviewLine } from "../../api/types";
import { textLimit } from "../../lib/request";
import { linesAtOnce, needsReason } from "../../lib/reviews";
import { useWords } from "../../lib/use-words";
import { FormDialog } from "../FormDialog";
import { InfoDialog } from "../InfoDialog";
import { SentProgress } from "../SentProgress";
import { useToast } from "../toast-context";
import classes from "./Reviews.module.css";
import { RecommendationBadge, Use } from "./parts";

interface Props {
  review: string;
  decision: ReviewDecision;
  lines: ReviewLine[];
  onClose: (done: boolean) => void;
}

const shownLines = 20;
const usualDays = 30;

/** DecideDialog shows what is decided and its evidence, takes the reason, and shows what could not be decided. */
export function DecideDialog({ review, decision, lines, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const decide = useDecideLines();
  // The selection is copied, because decided lines leave the list.
  const [shown] = useState(lines);
  const [comment, setComment] = useState("");
  const [days, setDays] = useState<number | undefined>(usualDays);
  const [missing, setMissing] = useState(false);
  const reason = needsReason(decision, shown);
  const failed = decide.data?.filter(({ ok }) => !ok) ?? [];
  if (decide.data && failed.length > 0) {
    return (
      <InfoDialog title={t("accessReview.refused", { count: failed.length })} onClose={() => onClose(true)}>
        <ul className={classes.list} data-testid="refused-lines">
          {failed.map(({ line, problem }) => {
            const about = shown.find((each) => each.line === line);
            return (
              <li key={line}>
                {about && <strong>{words.access(about)}</strong>}
                {problem && <p className={classes.muted}>{words.message(problem.message)}</p>}
              </li>
            );
          })}
        </ul>
      </InfoDialog>
    );
  }
  const submit = () => {
    if ((reason && comment.trim() === "") || (decision === "shorten" && days === undefined)) {
      setMissing(true);
      return false;
    }
    decide.send(
      {
        entries: shown.map(({ line, version }) => ({ line, version, decision, ...(decision === "shorten" && days !== undefined ? { days } : {}), ...(comment.trim() ? { comment: comment.trim() } : {}) })),
        send: (part) => decideLines(review, part),
      },
      {
        onSuccess: (results) => {
          if (!results.every(({ ok }) => ok)) return;
          toast(t("accessReview.done", { count: results.length }));
          onClose(true);
        },
      },
    );
    return true;
  };
  return (
    <FormDialog
      title={t(`accessReview.decideTitle.${decision}`, { count: shown.length })}
      submit={{ label: t(`accessReview.${decision}`), danger: decision === "revoke", testId: "decide-confirm", onSubmit: submit }}
      pending={decide.isPending}
      error={decide.error}
      values={{ comment }}
      onClose={() => onClose(false)}
      testId="decide-dialog"
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t(`accessReview.decideText.${decision}`)}</Text>
          <ul className={classes.list}>
            {shown.slice(0, shownLines).map((line) => (
              <li key={line.line}>
                <strong>{words.access(line)}</strong> <RecommendationBadge recommendation={line.recommendation} />
                <div><Use evidence={line.evidence} /></div>
              </li>
            ))}
            {shown.length > shownLines && <li className={classes.muted}>+ {shown.length - shownLines}</li>}
          </ul>
          {decision === "shorten" && (
            <NumberInput label={t("accessReview.days")} min={1} max={366} allowDecimal={false} allowNegative={false} required value={days ?? ""} onChange={(next) => setDays(typeof next === "number" ? next : undefined)} error={fieldError("days") ?? (missing && days === undefined && t("accessReview.needNumber"))} data-testid="decide-days" />
          )}
          <Textarea
            label={t("accessReview.comment")}
            description={t(reason ? "accessReview.commentNeeded" : "accessReview.commentOptional")}
            required={reason}
            autosize
            minRows={2}
            maxLength={textLimit}
            value={comment}
            onChange={(event) => setComment(event.currentTarget.value)}
            error={fieldError("comment") ?? (missing && reason && comment.trim() === "" && t("accessReview.commentMissing"))}
            data-testid="decide-comment"
          />
          <SentProgress progress={decide.progress} size={linesAtOnce} />
        </>
      )}
    </FormDialog>
  );
}
