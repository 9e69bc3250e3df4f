import { MutationCache, QueryClient } from "@tanstack/react-query";
import { asApiError } from "./client";

/** worthRetrying returns whether a request is repeated: only without an answer, or if the server allows it. */
function worthRetrying(failures: number, error: unknown): boolean {
  const { code, status } = asApiError(error);
  return failures < 2 && (code === "network" || status === 502 || status === 503 || status === 504);
}

/**
 * newCache returns the cache of everything that was read. After a write whose outcome is unknown, all that is on the page is read again before the error
 * is shown: the library awaits this callback first.
 */
export function newCache(): QueryClient {
  const cache: QueryClient = new QueryClient({
    defaultOptions: { queries: { retry: worthRetrying, staleTime: 5_000, refetchOnWindowFocus: true } },
    mutationCache: new MutationCache({
      onError: async (error) => {
        if (asApiError(error).code === "outcome-unknown") await cache.invalidateQueries();
      },
    }),
  });
  return cache;
}
