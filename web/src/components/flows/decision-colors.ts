import type { Decision } from "../../api/types";

/** What was refused is told apart by its shade: somebody's word is darker than the default. */
export const decisionColors: Record<Decision, string> = {
  allowed: "var(--acp-ok-solid)",
  audited: "var(--acp-warn-solid)",
  unmanaged: "var(--acp-idle-solid)",
  "default-denied": "var(--acp-bad-solid)",
  denied: "var(--acp-bad)",
};
