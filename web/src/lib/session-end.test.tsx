import { QueryClient } from "@tanstack/react-query";
import { createMemoryRouter } from "react-router";
import { describe, expect, it } from "vitest";
import { me } from "../testing/fixtures";
import { toLogin } from "./session-end";
import { keys } from "../api/keys";

/** The login page's code takes until `loaded` is called. */
function start(at: string, known = true) {
  let loaded: () => void = () => undefined;
  const code = new Promise<void>((resolve) => {
    loaded = resolve;
  });
  const router = createMemoryRouter(
    [
      { path: "/login", lazy: () => code.then(() => ({ Component: () => null })) },
      { path: "*", element: null },
    ],
    { initialEntries: [at] },
  );
  const cache = new QueryClient();
  if (known) cache.setQueryData(keys.me, me());
  const arrived = new Promise<string>((resolve) => {
    router.subscribe(({ location }) => {
      if (location.pathname === "/login") resolve(location.search);
    });
  });
  return { router, cache, loaded, arrived };
}

describe("the end of a session", () => {
  it("is said, with the way back, however many answers tell it", async () => {
    const { router, cache, loaded, arrived } = start("/tickets/T-1?tab=statement");
    toLogin(router, cache);
    toLogin(router, cache);
    loaded();
    expect(await arrived).toBe("?returnTo=%2Ftickets%2FT-1%3Ftab%3Dstatement&error=expired");
    expect(cache.getQueryData(keys.me)).toBeUndefined();
  });

  it("is not said to who was not in", async () => {
    const { router, cache, loaded, arrived } = start("/", false);
    toLogin(router, cache);
    loaded();
    expect(await arrived).toBe("?returnTo=%2F");
  });

  it("changes nothing on the login page", () => {
    const { router, cache } = start("/login?error=denied");
    toLogin(router, cache);
    expect(router.state.location.search).toBe("?error=denied");
    expect(router.state.navigation.location).toBeUndefined();
  });
});
