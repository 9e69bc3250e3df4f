/** The ledger's filter, as it is stored in the URL. Pure. */
import type { LedgerFilter } from "../api/governance";
import { instantOf } from "./zone";

/** ledgerKeys contains the URL parameters that filter the ledger. */
export const ledgerKeys = ["actor", "action", "object", "from", "to"] as const;

/** ledgerFilterOf reads the ledger's filter from the URL. Days and minutes are in the person's zone; values that are not a time are left out. */
export function ledgerFilterOf(search: URLSearchParams, zone: string): LedgerFilter {
  const text = (key: string) => search.get(key)?.trim() || undefined;
  const instant = (key: string) => instantOf(search.get(key) ?? "", zone)?.toISOString();
  const all = { actor: text("actor"), action: text("action"), object: text("object"), from: instant("from"), to: instant("to") };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
