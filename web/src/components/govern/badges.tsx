import { useTranslation } from "react-i18next";
import type { FindingKind, FindingSeverity, GuardState, MemberHealth, StatementIssueKind } from "../../api/types";
import { ToneBadge } from "../Badge";
import { findingTones, guardTones, healthTones, issueTones, severityTones } from "./tones";

/** HealthBadge shows the health of a member, with an explanation on hover. */
export function HealthBadge({ state, testId }: { state: MemberHealth; testId?: string }) {
  const { t } = useTranslation();
  return <ToneBadge tone={healthTones[state]} word={t(`fleet.isState.${state}`)} help={t(`fleet.stateHelp.${state}`)} value={state} {...(testId ? { testId } : {})} />;
}

/** GuardBadge shows the state of a member's guard, with an explanation on hover. */
export function GuardBadge({ state }: { state: GuardState }) {
  const { t } = useTranslation();
  return <ToneBadge tone={guardTones[state]} word={t(`fleet.isGuard.${state}`)} help={t(`fleet.guardHelp.${state}`)} value={state} />;
}

/** SeverityBadge shows the severity of a finding. */
export function SeverityBadge({ severity }: { severity: FindingSeverity }) {
  const { t } = useTranslation();
  return <ToneBadge tone={severityTones[severity]} word={t(`fleet.severity.${severity}`)} value={severity} />;
}

/** FindingBadge shows the kind of a finding, with an explanation on hover. */
export function FindingBadge({ kind, severity }: { kind: FindingKind; severity: FindingSeverity }) {
  const { t } = useTranslation();
  return <ToneBadge tone={severity === "Warns" ? "warn" : findingTones[kind]} word={t(`finding.kind.${kind}`)} help={t(`finding.kindHelp.${kind}`)} value={kind} />;
}

/** IssueBadge shows the kind of an issue of a statement, with the number of such issues if it is given. */
export function IssueBadge({ kind, count }: { kind: StatementIssueKind; count?: number }) {
  const { t } = useTranslation();
  const name = t(`acp.issue.${kind}`);
  return <ToneBadge tone={issueTones[kind]} word={count === undefined ? name : t("acp.counted", { number: count, issue: name })} help={t(`acp.issueHelp.${kind}`)} value={kind} />;
}
