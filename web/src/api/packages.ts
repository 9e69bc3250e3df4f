/** Requests about access packages. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { client, settled, unwrap } from "./client";
import { keys } from "./keys";
import type { AccessPackage } from "./types";
import { useReread } from "./use-reread";

/** usePackages reads the access packages that match a text. */
export function usePackages(filter: { q?: string; archived?: boolean }) {
  return useInfiniteQuery({
    queryKey: keys.package.list(filter),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/packages", { signal, params: { query: { ...filter, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
    placeholderData: keepPreviousData,
  });
}

/** isUpdating reports whether existing holders are being given a version of a package. */
const isUpdating = (of: AccessPackage | undefined): boolean => of?.versions.some(({ holders }) => holders?.state === "queued" || holders?.state === "running") ?? false;

/** usePackage reads one access package with its current version, and again while holders are given a version. Nothing is read without a name. */
export function usePackage(name: string) {
  return useQuery({
    queryKey: keys.package.one(name),
    queryFn: ({ signal }) => unwrap(client.GET("/packages/{id}", { signal, params: { path: { id: name } } })),
    enabled: name !== "",
    refetchInterval: ({ state }) => (isUpdating(state.data) ? 5_000 : false),
  });
}

/** usePackageHolders reads the applications that hold access by a package, as far as the person may see them. */
export function usePackageHolders(name: string) {
  return useInfiniteQuery({
    queryKey: keys.package.holders(name),
    queryFn: ({ signal, pageParam }) => unwrap(client.GET("/packages/{id}/holders", { signal, params: { path: { id: name }, query: { cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor || undefined,
  });
}

/** usesFresh is the time in milliseconds in which last uses are not read again: a year of connections is searched for them. */
const usesFresh = 60_000;

/** usePackageHolderUses reads when the holders of a package last used their access by it. */
export function usePackageHolderUses(name: string) {
  return useQuery({
    queryKey: keys.package.usesOfHolders(name),
    queryFn: ({ signal }) => unwrap(client.GET("/packages/{id}/holders/uses", { signal, params: { path: { id: name } } })),
    staleTime: usesFresh,
  });
}

/** useArchivePackage returns the mutation that makes a package unavailable for requests. */
export function useArchivePackage(name: string) {
  return useMutation({
    mutationFn: () => settled(client.POST("/packages/{id}/archive", { params: { path: { id: name } } })),
    onSuccess: useReread(keys.package.all),
  });
}
