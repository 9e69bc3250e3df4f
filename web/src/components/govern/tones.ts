/** Tones of the states of members, findings, guards and issues. Their texts come from the message catalogue. */
import type { FindingKind, FindingSeverity, GuardState, MemberHealth, StatementIssueKind } from "../../api/types";
import type { Tone } from "../state-styles";

export const healthTones: Record<MemberHealth, Tone> = { Ready: "ok", Unreachable: "bad", Quarantined: "bad", Downgraded: "warn", Leaving: "idle", Unknown: "idle" };
export const guardTones: Record<GuardState, Tone> = { Present: "ok", Missing: "warn", Changed: "bad", Unknown: "idle" };
export const severityTones: Record<FindingSeverity, Tone> = { Stops: "bad", Fails: "bad", Warns: "warn" };
export const findingTones: Record<FindingKind, Tone> = {
  leak: "bad",
  drift: "warn",
  orphan: "warn",
  overridden: "warn",
  quarantined: "bad",
  downgraded: "warn",
  unreachable: "bad",
  preflight: "bad",
  guard: "warn",
  refused: "bad",
  rejected: "bad",
  disagreement: "bad",
  capacity: "bad",
};
export const issueTones: Record<StatementIssueKind, Tone> = { shadowed: "warn", contradictory: "warn", redundant: "idle", refused: "bad", unused: "idle", expiring: "busy", expired: "idle" };

/** Tone of the usage of identities and policy maps; the adapter warns at 70 % and at 90 %. */
export const fillTone = (share: number): Tone => (share > 0.9 ? "bad" : share > 0.7 ? "warn" : "ok");
