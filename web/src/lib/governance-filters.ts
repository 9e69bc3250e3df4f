/** Filter values of the governance pages, in display order. */
import type { FindingKind, MemberHealth, Mode, PolicyOriginKind, StatementIssueKind } from "../api/types";

/** findingKinds contains the kinds of findings in display order. */
export const findingKinds: readonly FindingKind[] = ["quarantined", "unreachable", "downgraded", "leak", "drift", "orphan", "overridden", "disagreement", "refused", "rejected", "preflight", "guard", "capacity"];
/** memberHealths contains the states of members in display order, the worst first. */
export const memberHealths: readonly MemberHealth[] = ["Quarantined", "Unreachable", "Downgraded", "Leaving", "Unknown", "Ready"];
/** issueKinds contains the kinds of issues in display order. */
export const issueKinds: readonly StatementIssueKind[] = ["refused", "shadowed", "contradictory", "redundant", "unused", "expiring", "expired"];
/** originKinds contains the kinds of origins in display order. */
export const originKinds: readonly PolicyOriginKind[] = ["portal", "gitops", "kubectl", "other"];
/** modes contains the modes in display order. */
export const modes: readonly Mode[] = ["Observe", "Audit", "Enforce"];
