/** What a token may do, and the name of its words: a colon means something else to the catalogues. */
import type { TokenScope } from "../api/types";

export const scopes = ["read", "tickets:write", "tickets:decide", "catalog:write", "workloads:write", "rollout:write", "ledger:read"] as const satisfies readonly TokenScope[];

export const scopeWords = {
  read: "tokens.scope.read",
  "tickets:write": "tokens.scope.ticketsWrite",
  "tickets:decide": "tokens.scope.ticketsDecide",
  "catalog:write": "tokens.scope.catalogWrite",
  "workloads:write": "tokens.scope.workloadsWrite",
  "rollout:write": "tokens.scope.rolloutWrite",
  "ledger:read": "tokens.scope.ledgerRead",
} as const satisfies Record<TokenScope, string>;
