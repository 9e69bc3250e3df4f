/** The values of the form for a token. Pure. */
import type { TokenScope } from "../api/types";
import { scopes } from "./scopes";

/** lifetimes contains the durations of tokens in days that are offered. */
export const lifetimes = ["1", "7", "30", "90", "180", "365"] as const;

/** TokenForm contains the values of the form for a token; the secret follows from none of them. */
export interface TokenForm {
  name: string;
  chosen: TokenScope[];
  days: string;
}

/** isTokenForm reports whether a stored value has the shape of the form. */
export function isTokenForm(value: unknown): value is TokenForm {
  if (typeof value !== "object" || value === null) return false;
  const { name, chosen, days } = value as Record<string, unknown>;
  return typeof name === "string" && Array.isArray(chosen) && chosen.every((each) => scopes.some((scope) => scope === each)) && lifetimes.some((each) => each === days);
}
