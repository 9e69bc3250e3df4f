import { Button, Center, Stack } from "@mantine/core";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { useFilters } from "../lib/use-filters";
import { ErrorState } from "./Feedback";

interface Props {
  query: { data: { pages: unknown[] } | undefined; hasNextPage: boolean; isFetchingNextPage: boolean; isFetchNextPageError: boolean; error: unknown; fetchNextPage: () => unknown };
  /** The URL's parameter with the number of pages; a second list of a page needs a name of its own. */
  param?: string;
}

/** mostRestored is the maximum number of pages that are read again for a URL. */
export const mostRestored = 20;

function pagesOf(value: string | null): number {
  const pages = Number(value);
  return Number.isInteger(pages) && pages > 1 ? Math.min(pages, mostRestored) : 1;
}

/** isRestoring reports whether pages that the URL names are still to be read. */
export function isRestoring(search: URLSearchParams, { data, hasNextPage, isFetchNextPageError }: Props["query"], param = "pages"): boolean {
  return hasNextPage && !isFetchNextPageError && pagesOf(search.get(param)) > (data?.pages.length ?? 0);
}

/**
 * LoadMore reads further pages of a list, and shows why one could not be read. The number of pages is in the URL, and as many are read again when the URL
 * is opened.
 */
export function LoadMore({ query, param = "pages" }: Props) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const inUrl = pagesOf(search.get(param));
  const read = query.data?.pages.length ?? 0;
  // The number of pages that this component last wrote to the URL or read from it. A different number means that the reader navigated to another URL.
  const settled = useRef(1);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = query;
  useEffect(() => {
    if (read === 0) return;
    if (inUrl !== settled.current && inUrl > read && hasNextPage && !isFetchNextPageError) {
      if (!isFetchingNextPage) void fetchNextPage();
      return;
    }
    settled.current = Math.min(read, mostRestored);
    if (inUrl !== settled.current) change({ [param]: settled.current > 1 ? String(settled.current) : undefined });
  }, [change, fetchNextPage, hasNextPage, inUrl, isFetchNextPageError, isFetchingNextPage, param, read]);
  if (!hasNextPage) return null;
  return (
    <Stack mt="md" gap="sm">
      {isFetchNextPageError && <ErrorState error={query.error} title={t("error.moreTitle")} />}
      <Center>
        <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()} data-testid="load-more">
          {t("action.more")}
        </Button>
      </Center>
    </Stack>
  );
}
