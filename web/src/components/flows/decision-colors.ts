import type { Decision } from "../../api/types";

/** decisionColors maps each policy verdict to its color. Refused connections differ by shade: a deny statement is darker than the default deny. */
export const decisionColors: Record<Decision, string> = {
  allowed: "var(--acp-ok-solid)",
  audited: "var(--acp-warn-solid)",
  unmanaged: "var(--acp-idle-solid)",
  "default-denied": "var(--acp-bad-solid)",
  denied: "var(--acp-bad)",
};
