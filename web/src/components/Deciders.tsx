import { useTranslation } from "react-i18next";
import type { Step } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "./Deciders.module.css";
import { PersonName } from "./Names";

function DecidingStep({ step }: { step: Step }) {
  const { t } = useTranslation();
  const words = useWords();
  const many = step.approvers.length > 1;
  return (
    <li className={classes.step} data-testid={`preview-step-${step.name}`}>
      <span className={classes.people}>
        <span className={classes.name}>
          {words.step(step.name)}
          {step.quorum > 1 ? `, ${t("request.preview.quorum", { needs: step.quorum, of: step.approvers.length })}` : many && `, ${t("request.preview.anyOf")}`}
        </span>
        {step.approvers.map((person) => (
          <PersonName key={person.id} person={person} />
        ))}
      </span>
      {step.auto && <span className={classes.note}>{t("timeline.auto")}</span>}
      {step.note && <span className={classes.note}>{words.message(step.note)}</span>}
    </li>
  );
}

/** Deciders names the people who decide, in the order of the steps. */
export function Deciders({ steps }: { steps: Step[] }) {
  const { t } = useTranslation();
  if (steps.length === 0) return <p className={classes.note}>{t("request.preview.nobody")}</p>;
  return (
    <ol className={classes.steps}>
      {steps.map((step) => (
        <DecidingStep key={step.name} step={step} />
      ))}
    </ol>
  );
}
