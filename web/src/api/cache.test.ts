import { MutationObserver, QueryObserver } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import { newCache } from "./cache";
import { ApiError } from "./client";
import { keys } from "./keys";

describe("a write that failed", () => {
  it.each([
    { code: "outcome-unknown", reads: 2, reason: "the truth is read before anything is said" },
    { code: "store-unavailable", reads: 1, reason: "nothing was changed" },
  ])("$code: $reason", async ({ code, reads }) => {
    const cache = newCache();
    let read = 0;
    const view = new QueryObserver(cache, { queryKey: keys.ticket.one("T-1"), queryFn: () => Promise.resolve(++read), retry: false, staleTime: Infinity });
    const leave = view.subscribe(() => undefined);
    await expect.poll(() => view.getCurrentResult().data).toBe(1);

    const write = new MutationObserver(cache, { mutationFn: () => Promise.reject(new ApiError(code, 500, code)), retry: false });
    let seenWithError: number | undefined;
    const stop = write.subscribe(({ error }) => {
      if (error) seenWithError ??= view.getCurrentResult().data;
    });
    await expect(write.mutate()).rejects.toThrow(code);
    await expect.poll(() => seenWithError).toBe(reads);
    stop();
    leave();
    cache.clear();
  });
});
