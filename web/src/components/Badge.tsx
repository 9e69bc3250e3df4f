import { IconAlertTriangle, IconCircleCheck, IconCircleDashed, IconCircleX, IconClock } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { ClusterState, Decision, Message, Mode, Sensitivity, StepState, TicketKind, TicketState } from "../api/types";
import classes from "./Badge.module.css";
import { useWords } from "../lib/use-words";
import { breakGlassStyle, clusterStateStyles, decisionStyles, modeStyles, stepStateStyles, ticketStateStyles } from "./state-styles";
import type { StateStyle } from "./state-styles";

interface BadgeProps {
  look: StateStyle;
  word: string;
  help?: string | undefined;
  testId?: string | undefined;
  value?: string | undefined;
}

/** Badge shows a state with a tone, an icon and a text, never by colour alone. */
function Badge({ look, word, help, testId, value }: BadgeProps) {
  const Icon = look.icon;
  return (
    <span className={`${classes.badge} ${classes[look.tone]}`} title={help} data-testid={testId} data-value={value}>
      <Icon size={14} stroke={2} aria-hidden />
      {word}
    </span>
  );
}

/** TicketStateBadge shows the state of a ticket or item. */
export function TicketStateBadge({ state, testId }: { state: TicketState; testId?: string }) {
  const { t } = useTranslation();
  return <Badge look={ticketStateStyles[state]} word={t(`ticketState.${state}`)} testId={testId} value={state} />;
}

/** KindBadge shows the kind of a request, except for the most common one, a grant. */
export function KindBadge({ kind, breakGlass = false }: { kind: TicketKind; breakGlass?: boolean | undefined }) {
  const { t } = useTranslation();
  return (
    <>
      {breakGlass && <Badge look={breakGlassStyle} word={t("ticket.breakGlass")} help={t("ticket.breakGlassHelp")} testId="break-glass-badge" />}
      {kind !== "grant" && <span className={`${classes.badge} ${classes.idle}`} data-testid="kind-badge" data-value={kind}>{t(`kind.${kind}`)}</span>}
    </>
  );
}

/** StepStateBadge shows the state of an approval step. */
export function StepStateBadge({ state }: { state: StepState }) {
  const { t } = useTranslation();
  return <Badge look={stepStateStyles[state]} word={t(`stepState.${state}`)} value={state} />;
}

interface ClusterStateProps {
  state: ClusterState["state"];
  message?: Message | undefined;
  /** gone reports whether the access should be gone. */
  gone?: boolean;
  testId?: string;
}

/** ClusterStateBadge shows the state of a change in one member. The message of the state, or an explanation, appears on hover. */
export function ClusterStateBadge({ state, message, gone = false, testId }: ClusterStateProps) {
  const { t } = useTranslation();
  const words = useWords();
  const ended = gone && state === "Realized";
  const help = message ? words.message(message) : ended ? t("clusterHelp.gone") : t(`clusterHelp.${state}`);
  return <Badge look={clusterStateStyles[state]} word={ended ? t("clusterState.gone") : t(`clusterState.${state}`)} help={help} testId={testId} value={state} />;
}

/** DecisionBadge shows the policy verdict of a connection, with an explanation on hover. */
export function DecisionBadge({ decision }: { decision: Decision }) {
  const { t } = useTranslation();
  return <Badge look={decisionStyles[decision]} word={t(`decision.${decision}`)} help={t(`decisionHelp.${decision}`)} testId="decision-badge" value={decision} />;
}

/** ModeBadge shows the mode of a resource, with an explanation on hover. */
export function ModeBadge({ mode, testId }: { mode: Mode; testId?: string }) {
  const { t } = useTranslation();
  return <Badge look={modeStyles[mode]} word={t(`mode.${mode}`)} help={t(`modeHelp.${mode}`)} testId={testId} value={mode} />;
}

const sensitivityClass: Record<Sensitivity, string | undefined> = { low: classes.idle, medium: classes.idle, high: classes.warn };

/** SensitivityBadge shows the sensitivity of a resource. */
export function SensitivityBadge({ sensitivity }: { sensitivity: Sensitivity }) {
  const { t } = useTranslation();
  return <span className={`${classes.badge} ${sensitivityClass[sensitivity]}`}>{t(`sensitivity.${sensitivity}`)}</span>;
}

const toneIcons = { ok: IconCircleCheck, warn: IconAlertTriangle, bad: IconCircleX, busy: IconClock, idle: IconCircleDashed } as const;

/** ToneBadge shows a text with one of five tones and its icon. */
export function ToneBadge({ tone, word, help, testId, value }: { tone: keyof typeof toneIcons; word: string; help?: string | undefined; testId?: string; value?: string }) {
  return <Badge look={{ tone, icon: toneIcons[tone] }} word={word} help={help} testId={testId} value={value} />;
}
