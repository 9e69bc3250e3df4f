/** Requests about access reviews. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";
import { useReread } from "./reread";
import type { NewAccessReview, ReviewDecisions, ReviewLineState, ReviewOutcome, ReviewRecommendation } from "./types";

export function useReviews() {
  return useInfiniteQuery({
    queryKey: keys.review.list,
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/reviews", { signal, params: { query: { cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
  });
}

/** How often a review that changes in the background is read again. */
const whileChanging = 3_000;

export function useReview(id: string) {
  return useQuery({
    queryKey: keys.review.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/reviews/{id}", { signal, params: { path: { id } } })),
    refetchInterval: ({ state: { data } }) => (data !== undefined && data.state !== "closed" && (data.state === "preparing" || data.counts.applying > 0 || !data.deciding) ? whileChanging : false),
  });
}

export interface LineFilter {
  state?: ReviewLineState[];
  outcome?: ReviewOutcome[];
  recommendation?: ReviewRecommendation[];
  mine?: boolean;
  q?: string;
  limit?: number;
}

export function useReviewLines(id: string, filter: LineFilter, enabled = true) {
  return useInfiniteQuery({
    queryKey: keys.review.lines(id, filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/reviews/{id}/lines", { signal, params: { path: { id }, query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** The first of the lines that wait for the caller, of every review. */
export function useMyReviewLines(enabled = true) {
  return useQuery({
    queryKey: keys.review.mine,
    queryFn: ({ signal }) => unwrap(client.GET("/me/review-lines", { signal, params: { query: { limit: 200 } } })),
    enabled,
  });
}

/** Returns how many accesses a review with these settings would collect, without creating it. Nothing is requested while body is undefined: the form is not complete. */
export function useReviewPreview(body: NewAccessReview | undefined) {
  return useQuery({
    queryKey: keys.review.preview(body),
    queryFn: ({ signal }) => {
      if (!body) throw new Error("preview without a review");
      return unwrap(client.POST("/reviews/preview", { signal, body }));
    },
    enabled: body !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 30_000,
  });
}

export function useCreateReview() {
  return useMutation({
    mutationFn: ({ body, key }: { body: NewAccessReview; key: string }) => unwrap(client.POST("/reviews", { body, params: { header: { "Idempotency-Key": key } } })),
    onSuccess: useReread(keys.review.all),
  });
}

export function useEndReview(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) => unwrap(client.POST("/reviews/{id}/end", { params: { path: { id } }, body: { reason } })),
    onSuccess: (ended) => {
      cache.setQueryData(keys.review.one(id), ended);
      void cache.invalidateQueries({ queryKey: keys.review.all });
    },
  });
}

/** Each line has its own result, so none of them is known to be as the cache has it. */
export function useDecideLines(id: string) {
  return useMutation({
    mutationFn: (body: ReviewDecisions) => unwrap(client.POST("/reviews/{id}/decisions", { params: { path: { id } }, body })),
    onSettled: useReread(keys.review.all, keys.access.all),
  });
}
