import { useQueryClient } from "@tanstack/react-query";
import type { QueryKey } from "@tanstack/react-query";

/** useReread returns a function that invalidates the queries that a write changed. A mutation that awaits it lasts until the new state was read. */
export function useReread(...changed: QueryKey[]) {
  const cache = useQueryClient();
  return () => Promise.all(changed.map((queryKey) => cache.invalidateQueries({ queryKey })));
}
