/** The ledger's filter as the address has it. Pure. */
import type { LedgerFilter } from "../api/governance";
import { instantOf } from "./zone";

export const ledgerKeys = ["actor", "action", "object", "from", "to"] as const;

/** Days and minutes of the address are in the person's zone; what cannot be a time is left out. */
export function ledgerFilterOf(search: URLSearchParams, zone: string): LedgerFilter {
  const text = (key: string) => search.get(key)?.trim() || undefined;
  const instant = (key: string) => instantOf(search.get(key) ?? "", zone)?.toISOString();
  const all = { actor: text("actor"), action: text("action"), object: text("object"), from: instant("from"), to: instant("to") };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
