/** Requests about the views that the signed-in person saved. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { browserViews, canonical, forgetBrowserView, freeName } from "../lib/saved-views";
import { asApiError, client, settled, unwrap } from "./client";
import { keys } from "./keys";
import { useReread } from "./use-reread";
import type { NewSavedView, SavedViewPage } from "./types";

const read = (signal?: AbortSignal) => unwrap(client.GET("/me/views", signal ? { signal } : {}));
const put = (body: NewSavedView) => unwrap(client.PUT("/me/views", { body }));

/** useSavedViews reads the saved views of all pages, the one that was saved last first. */
export function useSavedViews() {
  return useQuery({ queryKey: keys.savedViews.own, queryFn: ({ signal }) => read(signal) });
}

/** useSharedView reads a view that somebody shares, by its link. It reads nothing without one. */
export function useSharedView(link: string | undefined) {
  return useQuery({
    queryKey: keys.savedViews.shared(link ?? ""),
    queryFn: ({ signal }) => unwrap(client.GET("/views/{id}", { signal, params: { path: { id: link ?? "" } } })),
    enabled: link !== undefined,
  });
}

/** useShareView returns the mutation that shares a view. Its answer has the link; a view that is shared already keeps it. */
export function useShareView() {
  return useMutation({ mutationFn: (id: string) => unwrap(client.PUT("/me/views/{id}/link", { params: { path: { id } } })), onSuccess: useReread(keys.savedViews.all) });
}

/** useUnshareView returns the mutation that stops sharing a view. */
export function useUnshareView() {
  return useMutation({ mutationFn: (id: string) => settled(client.DELETE("/me/views/{id}/link", { params: { path: { id } } })), onSettled: useReread(keys.savedViews.all) });
}

/** useSaveView returns the mutation that saves a view. It replaces a view of the same page and name. */
export function useSaveView() {
  return useMutation({ mutationFn: put, onSuccess: useReread(keys.savedViews.all) });
}

/** useDeleteSavedView returns the mutation that removes a view. A view that is gone already counts as removed. */
export function useDeleteSavedView() {
  return useMutation({
    mutationFn: async (id: string) => {
      try {
        await settled(client.DELETE("/me/views/{id}", { params: { path: { id } } }));
      } catch (error) {
        if (asApiError(error).code !== "not-found") throw error;
      }
    },
    onSettled: useReread(keys.savedViews.all),
  });
}

/**
 * takeOver saves the views that an earlier version stored in this browser, and removes each from the browser once the portal has it. A view with the
 * name of another view of the portal gets a number. The rest stays in the browser if the portal cannot store it now.
 */
async function takeOver(page: SavedViewPage, person: string): Promise<void> {
  const oldestFirst = browserViews(page, person).reverse();
  const stored = (await read()).items.filter((view) => view.page === page);
  const used = new Set(stored.map(({ name }) => name));
  for (const { name, search } of oldestFirst) {
    const query = canonical(search);
    const known = stored.some((view) => view.name === name.trim() && canonical(view.query) === query);
    if (!known) {
      const free = freeName(name, used);
      try {
        await put({ page, name: free, query });
        used.add(free);
      } catch (error) {
        // The portal refuses some views that earlier versions stored, such as a view without filters. It would refuse them again, so they are removed.
        if (asApiError(error).code !== "invalid") throw error;
      }
    }
    forgetBrowserView(page, person, name);
  }
}

/** useTakeOver takes over the views of the page that an earlier version stored in this browser, if there are any. */
export function useTakeOver(page: SavedViewPage, person: string | undefined) {
  const cache = useQueryClient();
  const begun = useRef(false);
  useEffect(() => {
    if (person === undefined || begun.current || browserViews(page, person).length === 0) return;
    begun.current = true;
    takeOver(page, person)
      .catch(() => undefined) // They are still in the browser, and are taken over the next time.
      .finally(() => void cache.invalidateQueries({ queryKey: keys.savedViews.all }));
  }, [cache, page, person]);
}
