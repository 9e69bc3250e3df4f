import { useTranslation } from "react-i18next";
import type { ClusterState, Decision, Mode, Sensitivity, StepState, TicketState } from "../api/types";
import classes from "./Badge.module.css";
import { clusterLooks, decisionLooks, modeLooks, stepLooks, ticketLooks } from "./states";
import type { Look } from "./states";

interface BadgeProps {
  look: Look;
  word: string;
  help?: string | undefined;
  testId?: string | undefined;
  value?: string | undefined;
}

/** A state in a tone, an icon and a word; never in colour alone. */
function Badge({ look, word, help, testId, value }: BadgeProps) {
  const Icon = look.icon;
  return (
    <span className={`${classes.badge} ${classes[look.tone]}`} title={help} data-testid={testId} data-value={value}>
      <Icon size={14} stroke={2} aria-hidden />
      {word}
    </span>
  );
}

export function TicketStateBadge({ state, testId }: { state: TicketState; testId?: string }) {
  const { t } = useTranslation();
  return <Badge look={ticketLooks[state]} word={t(`ticketState.${state}`)} testId={testId} value={state} />;
}

export function StepStateBadge({ state }: { state: StepState }) {
  const { t } = useTranslation();
  return <Badge look={stepLooks[state]} word={t(`stepState.${state}`)} value={state} />;
}

export function ClusterStateBadge({ state, message, testId }: { state: ClusterState["state"]; message?: string | undefined; testId?: string }) {
  const { t } = useTranslation();
  return <Badge look={clusterLooks[state]} word={t(`clusterState.${state}`)} help={message ?? t(`clusterHelp.${state}`)} testId={testId} value={state} />;
}

export function DecisionBadge({ decision }: { decision: Decision }) {
  const { t } = useTranslation();
  return <Badge look={decisionLooks[decision]} word={t(`decision.${decision}`)} help={t(`decisionHelp.${decision}`)} testId="decision-badge" value={decision} />;
}

export function ModeBadge({ mode, testId }: { mode: Mode; testId?: string }) {
  const { t } = useTranslation();
  return <Badge look={modeLooks[mode]} word={t(`mode.${mode}`)} help={t(`modeHelp.${mode}`)} testId={testId} value={mode} />;
}

const sensitivityClass: Record<Sensitivity, string | undefined> = { low: classes.idle, medium: classes.idle, high: classes.warn };

export function SensitivityBadge({ sensitivity }: { sensitivity: Sensitivity }) {
  const { t } = useTranslation();
  return <span className={`${classes.badge} ${sensitivityClass[sensitivity]}`}>{t(`sensitivity.${sensitivity}`)}</span>;
}
