import { useRef } from "react";
import { randomKey } from "./names";

/** useKey returns a function that returns an idempotency key: the same content keeps its key, so that a retry after a lost answer is not carried out twice. */
export function useKey() {
  const last = useRef<{ content: string; key: string }>(undefined);
  return (body: unknown): string => {
    const content = JSON.stringify(body);
    if (last.current?.content !== content) last.current = { content, key: randomKey() };
    return last.current.key;
  };
}
