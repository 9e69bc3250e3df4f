import { useTranslation } from "react-i18next";
import type { FindingKind, FindingSeverity, GuardState, MemberHealth, StatementIssueKind } from "../../api/types";
import { ToneBadge } from "../Badge";
import { findingTones, guardTones, healthTones, issueTones, severityTones } from "./tones";

export function HealthBadge({ state, testId }: { state: MemberHealth; testId?: string }) {
  const { t } = useTranslation();
  return <ToneBadge tone={healthTones[state]} word={t(`fleet.isState.${state}`)} help={t(`fleet.stateHelp.${state}`)} value={state} {...(testId ? { testId } : {})} />;
}

export function GuardBadge({ state }: { state: GuardState }) {
  const { t } = useTranslation();
  return <ToneBadge tone={guardTones[state]} word={t(`fleet.isGuard.${state}`)} help={t(`fleet.guardHelp.${state}`)} value={state} />;
}

export function SeverityBadge({ severity }: { severity: FindingSeverity }) {
  const { t } = useTranslation();
  return <ToneBadge tone={severityTones[severity]} word={t(`fleet.severity.${severity}`)} value={severity} />;
}

export function FindingBadge({ kind, severity }: { kind: FindingKind; severity: FindingSeverity }) {
  const { t } = useTranslation();
  return <ToneBadge tone={severity === "Warns" ? "warn" : findingTones[kind]} word={t(`finding.kind.${kind}`)} help={t(`finding.kindHelp.${kind}`)} value={kind} />;
}

export function IssueBadge({ kind, count }: { kind: StatementIssueKind; count?: number }) {
  const { t } = useTranslation();
  const name = t(`acp.issue.${kind}`);
  return <ToneBadge tone={issueTones[kind]} word={count === undefined ? name : t("acp.counted", { number: count, issue: name })} help={t(`acp.issueHelp.${kind}`)} value={kind} />;
}
