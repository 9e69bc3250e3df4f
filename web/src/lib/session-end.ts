import type { QueryClient } from "@tanstack/react-query";
import type { createBrowserRouter } from "react-router";
import { keys } from "../api/keys";

type Router = ReturnType<typeof createBrowserRouter>;

const loginPage = "/login";

const listeners = new Set<() => void>();

/** onSessionEnd calls the listener before the login page replaces the page, while its views still have their input. It returns a function that ends this. */
export function onSessionEnd(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** toLogin opens the login page, if it is not open yet, and clears the cache. It is called when an answer reports that there is no session. */
export function toLogin(router: Pick<Router, "state" | "navigate">, cache: QueryClient): void {
  const { location, navigation } = router.state;
  // Calls of several views are refused at the same time. The first one navigates to the login page, which may still be
  // loading; the later ones must not, because the cache no longer contains the person.
  if (location.pathname === loginPage || navigation.location?.pathname === loginPage) return;
  listeners.forEach((each) => each());
  // The login page reports the end of a session only to a person who was signed in.
  const wasIn = cache.getQueryData(keys.me) !== undefined;
  const search = new URLSearchParams({ returnTo: location.pathname + location.search });
  if (wasIn) search.set("error", "expired");
  void router.navigate(`${loginPage}?${search.toString()}`, { replace: true });
  // This must follow the navigation, because clearing the cache makes mounted views send their requests again.
  cache.clear();
}
