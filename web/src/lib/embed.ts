/**
 * Supports pages that other sites show in a frame. Another site may make a person click on something that they do not see, so these pages change
 * nothing: they offer no action and send no request that writes.
 */
import { createContext, useContext } from "react";

/** isEmbedded reports whether the server allows other sites to frame this document. The address does not count, because the server may read it differently. */
export const isEmbedded = (): boolean => document.querySelector<HTMLMetaElement>('meta[name="acp-embedded"]')?.content === "true";

/** EmbedContext is true in pages that other sites show in a frame. */
export const EmbedContext = createContext(false);

/** useEmbedded reports whether the page is shown in a frame of another site. */
export const useEmbedded = (): boolean => useContext(EmbedContext);

/** readOnly returns an answer of the API without what the person may do: `can` and its parts, `canRevoke` and the like, and the actions of waves. */
export function readOnly<T>(value: T): T {
  if (Array.isArray(value)) return value.map((each: unknown) => readOnly(each)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, part]: [string, unknown]): [string, unknown] => {
    if (typeof part === "boolean" && /^can[A-Z]/.test(key)) return [key, false];
    if (key === "can" && typeof part === "object" && part !== null) return [key, Object.fromEntries(Object.keys(part).map((each) => [each, false]))];
    if (key === "waves" && typeof part === "object" && part !== null && "actions" in part) return [key, { ...part, actions: [] }];
    return [key, readOnly(part)];
  });
  return Object.fromEntries(entries) as T;
}

/** withoutEmbed returns the address of the same page in the portal itself. */
export function withoutEmbed(address: string): string {
  const url = new URL(address, globalThis.location.origin);
  url.searchParams.delete("embed");
  return url.pathname + url.search + url.hash;
}

/** openOutside makes a link open in a new tab, except for downloads and places of this page. */
function openOutside(link: HTMLAnchorElement) {
  const here = globalThis.location;
  const url = new URL(link.href, here.href);
  if (link.hasAttribute("download") || (url.hash !== "" && url.origin === here.origin && url.pathname === here.pathname && url.search === here.search)) return;
  if (url.origin === here.origin && url.searchParams.has("embed")) link.href = withoutEmbed(link.href);
  link.target = "_blank";
  link.relList.add("noopener");
}

/** openLinksOutside makes all links of the document open in new tabs, also those that are added later. It returns the function that ends this. */
export function openLinksOutside(): () => void {
  const all = () => document.querySelectorAll<HTMLAnchorElement>("a[href]").forEach(openOutside);
  const observer = new MutationObserver(all);
  observer.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["href"] });
  all();
  return () => observer.disconnect();
}
