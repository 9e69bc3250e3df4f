/** The scopes of tokens, and the key of each scope's text: a colon has another meaning in the keys of i18next. */
import type { TokenScope } from "../api/types";

/** scopes contains the scopes of tokens in display order. */
export const scopes = ["read", "tickets:write", "tickets:decide", "catalog:write", "workloads:write", "ledger:read", "rollout:write"] as const satisfies readonly TokenScope[];

/** scopeWords maps each scope to the key of its text: a colon has another meaning in the keys of texts. */
export const scopeWords = {
  read: "tokens.scope.read",
  "tickets:write": "tokens.scope.ticketsWrite",
  "tickets:decide": "tokens.scope.ticketsDecide",
  "catalog:write": "tokens.scope.catalogWrite",
  "workloads:write": "tokens.scope.workloadsWrite",
  "ledger:read": "tokens.scope.ledgerRead",
  "rollout:write": "tokens.scope.rolloutWrite",
} as const satisfies Record<TokenScope, string>;
