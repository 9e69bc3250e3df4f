/** Requests about access reviews. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { ReviewLineOrder } from "../lib/use-server-sort";
import { linesAtOnce } from "../lib/reviews";
import { useBatches } from "./batches";
import { keys } from "./keys";
import { useReread } from "./use-reread";
import type { NewAccessReview, ReviewDecisions, ReviewLineState, ReviewOutcome, ReviewRecommendation, ReviewResult } from "./types";

/** useReviews reads all access reviews. */
export function useReviews() {
  return useInfiniteQuery({
    queryKey: keys.review.list,
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/reviews", { signal, params: { query: { cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
  });
}

/** whileChanging is the interval in milliseconds at which a review that changes in the background is read again. */
const whileChanging = 3_000;

/** useReview reads one access review, and again every 3 s while it changes in the background. */
export function useReview(id: string) {
  return useQuery({
    queryKey: keys.review.one(id),
    queryFn: ({ signal }) => unwrap(client.GET("/reviews/{id}", { signal, params: { path: { id } } })),
    refetchInterval: ({ state: { data } }) => (data !== undefined && data.state !== "closed" && (data.state === "preparing" || data.counts.applying > 0 || !data.deciding) ? whileChanging : false),
  });
}

/** LineFilter selects the lines of an access review. */
export interface LineFilter {
  state?: ReviewLineState[];
  outcome?: ReviewOutcome[];
  recommendation?: ReviewRecommendation[];
  mine?: boolean;
  q?: string;
  limit?: number;
  sort?: ReviewLineOrder;
}

/** useReviewLines reads the lines of an access review that match the filter. */
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

/** useMyReviewLines reads the first 200 lines, of all access reviews, that the person has to decide. */
export function useMyReviewLines(enabled = true) {
  return useQuery({
    queryKey: keys.review.mine,
    queryFn: ({ signal }) => unwrap(client.GET("/me/review-lines", { signal, params: { query: { limit: 200 } } })),
    enabled,
  });
}

/**
 * useReviewPreview reads how many accesses a review with these settings would collect, without creating it. Nothing is read while body is undefined: the
 * form is not complete. The answer for other settings is never shown in its place.
 */
export function useReviewPreview(body: NewAccessReview | undefined) {
  return useQuery({
    queryKey: keys.review.preview(body),
    queryFn: ({ signal }) => {
      if (!body) throw new Error("preview without a review");
      return unwrap(client.POST("/reviews/preview", { signal, body }));
    },
    enabled: body !== undefined,
    retry: false,
    staleTime: 30_000,
  });
}

/** useCreateReview returns the mutation that creates an access review. */
export function useCreateReview() {
  return useMutation({
    mutationFn: ({ body, key }: { body: NewAccessReview; key: string }) => unwrap(client.POST("/reviews", { body, params: { header: { "Idempotency-Key": key } } })),
    onSuccess: useReread(keys.review.all),
  });
}

/** useEndReview returns the mutation that ends an access review early. */
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

type LineDecision = ReviewDecisions["decisions"][number];

/** decideLines decides at most `linesAtOnce` lines of an access review, and returns the result of each. */
export const decideLines = async (id: string, decisions: LineDecision[]): Promise<ReviewResult[]> =>
  (await unwrap(client.POST("/reviews/{id}/decisions", { params: { path: { id } }, body: { decisions } }))).items;

/** useDecideLines returns the mutation that decides any number of lines of an access review. Each line has its own result, so the review is read again afterwards. */
export function useDecideLines() {
  return useBatches<LineDecision, ReviewResult>(linesAtOnce, useReread(keys.review.all, keys.access.all));
}
