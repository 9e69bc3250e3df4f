/** Tones of the states of members, findings, guards and issues. Their texts come from the message catalogue. */
import type { FindingKind, FindingSeverity, GuardState, MemberHealth, StatementIssueKind } from "../../api/types";
import type { Tone } from "../state-styles";

/** healthTones maps the health of a member to a tone. */
export const healthTones: Record<MemberHealth, Tone> = { Ready: "ok", Unreachable: "bad", Quarantined: "bad", Downgraded: "warn", Leaving: "idle", Unknown: "idle" };
/** guardTones maps the state of a member's guard to a tone. */
export const guardTones: Record<GuardState, Tone> = { Present: "ok", Missing: "warn", Changed: "bad", Unknown: "idle" };
/** severityTones maps the severity of a finding to a tone. */
export const severityTones: Record<FindingSeverity, Tone> = { Stops: "bad", Fails: "bad", Warns: "warn" };
/** findingTones maps the kind of a finding to a tone. */
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
/** issueTones maps the kind of an issue to a tone. */
export const issueTones: Record<StatementIssueKind, Tone> = { shadowed: "warn", contradictory: "warn", redundant: "idle", refused: "bad", unused: "idle", expiring: "busy", expired: "idle" };

/** fillTone returns the tone of the usage of identities and policy maps; the adapter warns at 70 % and at 90 %. */
export const fillTone = (share: number): Tone => (share > 0.9 ? "bad" : share > 0.7 ? "warn" : "ok");
