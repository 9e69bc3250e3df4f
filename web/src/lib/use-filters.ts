/** Filters live in the URL, so that a view can be linked, reloaded and gone back to. */
import { useCallback } from "react";
import { useSearchParams } from "react-router";

export type FilterChange = Record<string, string | string[] | undefined>;

/** The search with the change applied; what is empty is left out, so that the plain view has the plain address. */
export function applyChange(search: URLSearchParams, change: FilterChange): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [key, value] of Object.entries(change)) {
    next.delete(key);
    for (const each of Array.isArray(value) ? value : [value]) if (each) next.append(key, each);
  }
  return next;
}

export function useFilters(): [URLSearchParams, (change: FilterChange) => void] {
  const [search, setSearch] = useSearchParams();
  const change = useCallback(
    (next: FilterChange) => setSearch((before) => applyChange(before, next), { replace: true, preventScrollReset: true }),
    [setSearch],
  );
  return [search, change];
}

/** The values of a filter that are among the allowed ones; what else a URL says is ignored. */
export function among<T extends string>(values: string[], allowed: readonly T[]): T[] {
  return allowed.filter((each) => values.includes(each));
}
