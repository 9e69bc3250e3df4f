/** Leads to the login page when an answer says that there is no session any more. */
import type { QueryClient } from "@tanstack/react-query";
import type { createBrowserRouter } from "react-router";
import { keys } from "../api/keys";

type Router = ReturnType<typeof createBrowserRouter>;

const loginPage = "/login";

export function toLogin(router: Pick<Router, "state" | "navigate">, cache: QueryClient): void {
  const { location, navigation } = router.state;
  // Views that ask at the same time are refused at the same time; the first one told it all, and the login page may
  // still be loading. A later one knows no more who was in.
  if (location.pathname === loginPage || navigation.location?.pathname === loginPage) return;
  // Whoever was in is told that the session ended; whoever comes for the first time is just asked to sign in.
  const wasIn = cache.getQueryData(keys.me) !== undefined;
  const search = new URLSearchParams({ returnTo: location.pathname + location.search });
  if (wasIn) search.set("error", "expired");
  void router.navigate(`${loginPage}?${search.toString()}`, { replace: true });
  // After the navigation has begun: clearing makes views ask again.
  cache.clear();
}
