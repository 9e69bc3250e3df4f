import { useTranslation } from "react-i18next";
import type { Step } from "../api/types";
import { useWords } from "../lib/use-words";
import { People } from "./People";
import classes from "./StepRules.module.css";
import { RelativeTime } from "./Time";

/** OnCall shows who of the approvers may decide the step now, because they are on call. */
function OnCall({ step }: { step: Step }) {
  const { t } = useTranslation();
  const words = useWords();
  const { onCall } = step;
  if (!onCall) return null;
  const { schedule, tier, people, fallback, message, deniedAt } = onCall;
  return (
    <div className={classes.rule} data-testid={`on-call-${step.name}`} data-value={message ? (fallback ? "fallback" : "waits") : "known"}>
      <span>{t("stepRules.onCall", { schedule, tier })}</span>
      {message && <span>{words.message(message)} {t(fallback ? "stepRules.onCallFallback" : people.length > 0 ? "stepRules.onCallEscalated" : "stepRules.onCallWaits")}</span>}
      {deniedAt && (
        <span data-testid={`denied-${step.name}`}>
          {t("stepRules.onCallDenied")} <RelativeTime at={deniedAt} />
        </span>
      )}
      {!fallback && people.length > 0 && (
        <span className={classes.people}>
          {!message && t(step.escalated ? "stepRules.onCallOrEscalated" : "stepRules.onCallNow")} <People people={people} />
        </span>
      )}
    </div>
  );
}

/** Timeout shows what happens if the step is not decided in time. */
function Timeout({ step }: { step: Step }) {
  const { t } = useTranslation();
  const words = useWords();
  const { onTimeout = "Remind", timeoutSeconds, deadline, escalated, escalateTo = [], escalateTotal } = step;
  if (escalated || (timeoutSeconds === undefined && !deadline)) return null;
  return (
    <div className={classes.rule} data-testid={`timeout-${step.name}`} data-value={onTimeout}>
      <span>
        {deadline ? (
          <>
            {t(`timeline.deadline.${onTimeout}`)} <RelativeTime at={deadline} />
            {onTimeout === "Escalate" && escalateTo.length > 0 && ":"}
          </>
        ) : (
          t(`stepRules.timeout.${onTimeout === "Escalate" && escalateTo.length === 0 ? "EscalateToNobody" : onTimeout}`, { duration: words.duration(timeoutSeconds ?? 0) })
        )}
      </span>
      {onTimeout === "Escalate" && escalateTo.length > 0 && (
        <span className={classes.people}>
          <People people={escalateTo} total={escalateTotal} />
        </span>
      )}
    </div>
  );
}

/** StepRules shows what applies to a step that is not decided yet: the limit to people on call, the timeout and the reminders. */
export function StepRules({ step }: { step: Step }) {
  const { t } = useTranslation();
  const words = useWords();
  if (step.auto) return null;
  return (
    <>
      <OnCall step={step} />
      <Timeout step={step} />
      {step.remindSeconds !== undefined && (
        <div className={classes.rule} data-testid={`reminders-${step.name}`}>
          {t("stepRules.remind", { duration: words.duration(step.remindSeconds) })}
        </div>
      )}
    </>
  );
}
