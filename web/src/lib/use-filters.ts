/** Filters live in the URL, so that a view can be linked, reloaded and gone back to. */
import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** FilterChange contains the new values of the URL parameters to change; a parameter is removed if its value is undefined or empty. */
export type FilterChange = Record<string, string | string[] | undefined>;

/** applyChange returns the parameters with the change applied. Empty values are left out, so that the view without filters has the plain URL. */
export function applyChange(search: URLSearchParams, change: FilterChange): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [key, value] of Object.entries(change)) {
    next.delete(key);
    for (const each of Array.isArray(value) ? value : [value]) if (each) next.append(key, each);
  }
  return next;
}

/** useFilters returns the URL parameters and a function that changes them, without a new entry in the browser's history. */
export function useFilters(): [URLSearchParams, (change: FilterChange) => void] {
  const [search, setSearch] = useSearchParams();
  const change = useCallback(
    (next: FilterChange) => setSearch((before) => applyChange(before, next), { replace: true, preventScrollReset: true }),
    [setSearch],
  );
  return [search, change];
}

/** among returns the values of a filter that are allowed, in the order of the allowed ones; all others are ignored. */
export function among<T extends string>(values: string[], allowed: readonly T[]): T[] {
  return allowed.filter((each) => values.includes(each));
}
