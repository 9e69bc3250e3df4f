/**
 * Loads the code of a page when the page is first opened. This fails while the portal is unavailable, or if a newer version of the portal
 * replaced the file. Browsers may cache a failed import until the document is reloaded, so only a reload is a reliable retry.
 */
import { lazy } from "react";
import type { ComponentType } from "react";

/** PageLoadError reports that the code of a page could not be loaded. */
export class PageLoadError extends Error {
  constructor(cause: unknown) {
    super("the page's code could not be loaded", { cause });
    this.name = "PageLoadError";
  }
}

const storageKey = "acp-page-reloaded";

/** reloadWasTried reports whether a reload was tried already and no page loaded since. Another reload would repeat endlessly. */
export function reloadWasTried(): boolean {
  try {
    return sessionStorage.getItem(storageKey) !== null;
  } catch {
    // Without storage a reload loop could not be detected, so no reload is tried.
    return true;
  }
}

/** rememberReload records that a reload was tried. */
export function rememberReload(): void {
  try {
    sessionStorage.setItem(storageKey, "1");
  } catch {
    // See above.
  }
}

function forgetReload(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // See above.
  }
}

/** lazyPage returns a route's `lazy` for the import of a page. */
export function lazyPage(load: () => Promise<ComponentType>): () => Promise<{ Component: ComponentType }> {
  return async () => {
    try {
      const Component = await load();
      forgetReload();
      return { Component };
    } catch (cause) {
      throw new PageLoadError(cause);
    }
  };
}

/** lazyPart returns a component whose code is loaded when it is first shown. */
export function lazyPart<P extends object>(load: () => Promise<ComponentType<P>>) {
  return lazy(async () => {
    try {
      return { default: await load() };
    } catch (cause) {
      throw new PageLoadError(cause);
    }
  });
}

/** portalAnswers reports whether the portal answers. An answer of a proxy in its place (502, 503, 504) does not count. */
export async function portalAnswers(signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch("/favicon.svg", { method: "HEAD", cache: "no-store", signal });
    return response.status < 500;
  } catch {
    return false;
  }
}
