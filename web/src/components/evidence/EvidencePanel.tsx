import { useTranslation } from "react-i18next";
import type { EvidenceScore } from "../../api/types";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import tables from "../Tables.module.css";
import classes from "./Evidence.module.css";

const partNames = ["observed", "weekly", "loss", "newcomers", "unattributed", "long-lived"] as const;

interface Bar {
  value: number;
  of?: number;
  threshold?: number | undefined;
  enough: boolean;
}

/** ScoreBar shows a value as a bar, with a mark at the threshold if there is one. */
export function ScoreBar({ value, of = 100, threshold, enough }: Bar) {
  const share = (part: number) => `${of === 0 ? 0 : Math.min(100, (part / of) * 100)}%`;
  return (
    <div className={classes.bar} data-enough={enough} aria-hidden>
      <span style={{ width: share(value) }} />
      {threshold !== undefined && <i style={{ left: share(threshold) }} />}
    </div>
  );
}

/** EvidencePanel shows the parts of the evidence score, and what is missing for the full score. */
export function EvidencePanel({ score }: { score: EvidenceScore }) {
  const { t } = useTranslation();
  const words = useWords();
  const nameOf = (name: string) => {
    const known = partNames.find((each) => each === name);
    return known ? t(`evidence.part.${known}`) : name;
  };
  return (
    <div className={classes.box} data-testid="evidence-score" data-value={score.value}>
      <div className={classes.score}>
        <span className={classes.value}>
          {score.value} <small>/ 100</small>
        </span>
        <ToneBadge tone={score.enough ? "ok" : "warn"} word={t(score.enough ? "evidence.enough" : score.value < score.threshold ? "evidence.notEnough" : "evidence.partLacking", { threshold: score.threshold })} value={score.enough ? "enough" : "missing"} testId="evidence-enough" />
        <span className={tables.muted}>{t("evidence.window", { duration: words.duration(score.windowSeconds) })}</span>
      </div>
      <ScoreBar value={score.value} threshold={score.threshold} enough={score.enough} />
      <dl className={classes.parts}>
        {score.parts.map((part) => (
          <div key={part.name} data-testid={`evidence-${part.name}`}>
            <dt>{nameOf(part.name)}</dt>
            <dd className={classes.track}>
              <ScoreBar value={part.points} of={part.of} enough={part.points >= part.of} />
            </dd>
            <dd className={classes.points}>{t("evidence.points", { points: part.points, of: part.of })}</dd>
            <dd className={`${classes.missing} ${tables.muted}`}>{part.missing ? words.message(part.missing) : t("evidence.full")}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
