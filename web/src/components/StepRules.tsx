import { useTranslation } from "react-i18next";
import type { Person, Step } from "../api/types";
import { commonRules, timeoutOf } from "../lib/step-rules";
import type { StepTimeout } from "../lib/step-rules";
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

/** Escalated lists the people who can decide after a timeout. */
function Escalated({ people, total }: { people: Person[]; total: number | undefined }) {
  return (
    <span className={classes.people}>
      <People people={people} total={total} />
    </span>
  );
}

/** TimeoutText says what happens without a decision. */
function TimeoutText({ timeout: { seconds, action, people, total } }: { timeout: StepTimeout }) {
  const { t } = useTranslation();
  const words = useWords();
  const escalates = action === "Escalate" && people.length > 0;
  return (
    <>
      <span>{t(`stepRules.timeout.${action === "Escalate" && !escalates ? "EscalateToNobody" : action}`, { duration: words.duration(seconds) })}</span>
      {escalates && <Escalated people={people} total={total} />}
    </>
  );
}

/** Timeout shows what happens if the step is not decided in time: with its deadline if it has one, and otherwise unless all steps have the same timeout. */
function Timeout({ step, shared }: { step: Step; shared: boolean }) {
  const { t } = useTranslation();
  const { onTimeout = "Remind", deadline, escalated, escalateTo = [], escalateTotal } = step;
  const timeout = shared ? undefined : timeoutOf(step);
  if (escalated || (!timeout && !deadline)) return null;
  return (
    <div className={classes.rule} data-testid={`timeout-${step.name}`} data-value={onTimeout}>
      {deadline ? (
        <>
          <span>
            {t(`timeline.deadline.${onTimeout}`)} <RelativeTime at={deadline} />
            {onTimeout === "Escalate" && escalateTo.length > 0 && ":"}
          </span>
          {onTimeout === "Escalate" && escalateTo.length > 0 && <Escalated people={escalateTo} total={escalateTotal} />}
        </>
      ) : (
        timeout && <TimeoutText timeout={timeout} />
      )}
    </div>
  );
}

/**
 * StepRules shows what applies to a step that is not decided yet: the limit to people on call, the timeout and the reminders. It leaves out what applies to all steps
 * of the chain, which SharedStepRules shows once.
 */
export function StepRules({ step, chain }: { step: Step; chain: Step[] }) {
  const { t } = useTranslation();
  const words = useWords();
  if (step.auto) return null;
  const shared = commonRules(chain);
  return (
    <>
      <OnCall step={step} />
      <Timeout step={step} shared={shared.timeout !== undefined} />
      {step.remindSeconds !== undefined && shared.remindSeconds === undefined && (
        <div className={classes.rule} data-testid={`reminders-${step.name}`}>
          {t("stepRules.remind", { duration: words.duration(step.remindSeconds) })}
        </div>
      )}
    </>
  );
}

/** SharedStepRules shows the timeout and the reminders that all open steps of a chain have in common. */
export function SharedStepRules({ chain }: { chain: Step[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const { timeout, remindSeconds } = commonRules(chain);
  if (!timeout && remindSeconds === undefined) return null;
  return (
    <div className={`${classes.rule} ${classes.sentences}`} data-testid="shared-rules">
      <span>{t("stepRules.everyStep")}</span>{" "}
      {timeout && <TimeoutText timeout={timeout} />}{" "}
      {remindSeconds !== undefined && <span>{t("stepRules.remind", { duration: words.duration(remindSeconds) })}</span>}
    </div>
  );
}
