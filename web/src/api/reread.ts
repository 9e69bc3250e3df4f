import { useQueryClient } from "@tanstack/react-query";

/** What a write changed is read again, by kind; a mutation that awaits it lasts until the new state is there. */
export function useReread(...kinds: string[]) {
  const cache = useQueryClient();
  return () => Promise.all(kinds.map((kind) => cache.invalidateQueries({ queryKey: [kind] })));
}
