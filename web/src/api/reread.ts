import { useQueryClient } from "@tanstack/react-query";
import type { QueryKey } from "@tanstack/react-query";

/** Invalidates what a write changed; a mutation that awaits it lasts until the new state was read. */
export function useReread(...changed: QueryKey[]) {
  const cache = useQueryClient();
  return () => Promise.all(changed.map((queryKey) => cache.invalidateQueries({ queryKey })));
}
