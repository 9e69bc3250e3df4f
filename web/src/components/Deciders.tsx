import { useTranslation } from "react-i18next";
import type { Step } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "./Deciders.module.css";
import { People } from "./People";
import { SharedStepRules, StepRules } from "./StepRules";

function DecidingStep({ step, chain }: { step: Step; chain: Step[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const total = step.approversTotal ?? step.approvers.length;
  return (
    <li className={classes.step} data-testid={`preview-step-${step.name}`}>
      <span className={classes.people}>
        <span className={classes.name}>
          {words.step(step.name)}
          {step.quorum > 1 ? `, ${t("request.preview.quorum", { needs: step.quorum, of: total })}` : total > 1 && `, ${t("request.preview.anyOf")}`}
        </span>
        <People people={step.approvers} total={total} />
      </span>
      {step.auto && <span className={classes.note}>{t("timeline.auto")}</span>}
      {step.note && <span className={classes.note}>{words.message(step.note)}</span>}
      <StepRules step={step} chain={chain} />
    </li>
  );
}

/** Deciders names the people who decide, in the order of the steps, and says what happens if they do not. */
export function Deciders({ steps }: { steps: Step[] }) {
  const { t } = useTranslation();
  if (steps.length === 0) return <p className={classes.note}>{t("request.preview.nobody")}</p>;
  return (
    <>
      <ol className={classes.steps}>
        {steps.map((step) => (
          <DecidingStep key={step.name} step={step} chain={steps} />
        ))}
      </ol>
      <div className={classes.shared}><SharedStepRules chain={steps} /></div>
    </>
  );
}
