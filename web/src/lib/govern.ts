/** Filter values of the governance pages, in display order. */
import type { FindingKind, Mode, PolicyOriginKind, StatementIssueKind } from "../api/types";

export const findingKinds: readonly FindingKind[] = ["quarantined", "unreachable", "downgraded", "leak", "drift", "orphan", "overridden", "disagreement", "refused", "rejected", "preflight", "guard", "capacity"];
export const issueKinds: readonly StatementIssueKind[] = ["refused", "shadowed", "contradictory", "redundant", "unused", "expiring", "expired"];
export const originKinds: readonly PolicyOriginKind[] = ["portal", "gitops", "kubectl", "other"];
export const modes: readonly Mode[] = ["Observe", "Audit", "Enforce"];
