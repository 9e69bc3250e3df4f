import { useMutation } from "@tanstack/react-query";
import { useLayoutEffect, useRef, useState } from "react";

/** BatchProgress is how many of the entries were sent and answered. */
export interface BatchProgress {
  done: number;
  total: number;
}

/** Sending is what a call of `send` needs: the entries, and the function that sends some of them and returns their results. */
interface Sending<Entry, Result> {
  entries: readonly Entry[];
  send: (entries: Entry[]) => Promise<Result[]>;
}

/** Batches is the state of a mutation that sends many entries. `data` contains the results of all of them once all were answered. */
export interface Batches<Entry, Result> {
  send: (sending: Sending<Entry, Result>, options?: { onSuccess?: (results: Result[]) => void }) => void;
  data: Result[] | undefined;
  error: unknown;
  isPending: boolean;
  progress: BatchProgress | undefined;
}

/**
 * useBatches returns a mutation that sends any number of entries in calls of at most `size`, one after the other. After an error, sending the same entries
 * again continues with those without an answer. Nothing more is sent after the component is gone. `onSettled` is called after each attempt, because some
 * entries may have been accepted before an error.
 */
export function useBatches<Entry, Result>(size: number, onSettled: () => unknown): Batches<Entry, Result> {
  const [progress, setProgress] = useState<BatchProgress>();
  const results = useRef<Result[]>([]);
  const answered = useRef(0);
  const gone = useRef(false);
  // A layout effect ends with the component; other effects end some time later, and an answer that comes meanwhile would be followed by a call.
  useLayoutEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
    };
  }, []);
  const mutation = useMutation({
    mutationFn: async ({ entries, send }: Sending<Entry, Result>) => {
      setProgress({ done: answered.current, total: entries.length });
      while (answered.current < entries.length && !gone.current) {
        const part = entries.slice(answered.current, answered.current + size);
        results.current.push(...(await send(part)));
        answered.current += part.length;
        setProgress({ done: answered.current, total: entries.length });
      }
      return results.current;
    },
    onSettled: () => {
      onSettled();
    },
  });
  return { send: mutation.mutate, data: mutation.data, error: mutation.error, isPending: mutation.isPending, progress };
}
