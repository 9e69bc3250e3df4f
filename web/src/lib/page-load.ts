/**
 * Pages load when they are first opened, and that can fail: the portal is away, or a newer version replaced the
 * file. Browsers may remember a failed import for as long as the document lives, so only a reload heals for sure.
 */
import { lazy } from "react";
import type { ComponentType } from "react";

export class PageLoadError extends Error {
  constructor(cause: unknown) {
    super("the page's code could not be loaded", { cause });
    this.name = "PageLoadError";
  }
}

const storageKey = "acp-page-reloaded";

/** Whether a reload was tried already and no page loaded since: another one would go round in circles. */
export function reloadWasTried(): boolean {
  try {
    return sessionStorage.getItem(storageKey) !== null;
  } catch {
    // Without storage a reload loop could not be detected, so no reload is tried.
    return true;
  }
}

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

/** A route's `lazy`, out of an import. */
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

/** A part of a page that loads when it is first looked at. */
export function lazyPart<P extends object>(load: () => Promise<ComponentType<P>>) {
  return lazy(async () => {
    try {
      return { default: await load() };
    } catch (cause) {
      throw new PageLoadError(cause);
    }
  });
}

/** Whether the portal answers. A proxy that answers in its place (502, 503, 504) is not the portal. */
export async function portalAnswers(signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch("/favicon.svg", { method: "HEAD", cache: "no-store", signal });
    return response.status < 500;
  } catch {
    return false;
  }
}
