/**
 * Saved views are kept in the portal. Earlier versions kept them in the browser; this file reads those, so that they can be taken over, and removes
 * them.
 */
import type { SavedView, SavedViewPage } from "../api/types";

/** BrowserView is a view that an earlier version stored in this browser. Its search begins with a question mark. */
export interface BrowserView {
  name: string;
  search: string;
}

/** nameLimit is the maximum length of a view's name in characters. */
export const nameLimit = 60;

const storageKey = (page: SavedViewPage, person: string) => `acp-saved-${page}:${person}`;

const isView = (value: unknown): value is BrowserView =>
  typeof value === "object" && value !== null && typeof (value as Record<string, unknown>).name === "string" && typeof (value as Record<string, unknown>).search === "string";

/** browserViews returns the views of the page that this person has in this browser, the newest first. */
export function browserViews(page: SavedViewPage, person: string): BrowserView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey(page, person)) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isView) : [];
  } catch {
    return [];
  }
}

/** forgetBrowserView removes a view from this browser. */
export function forgetBrowserView(page: SavedViewPage, person: string, name: string): void {
  try {
    const rest = browserViews(page, person).filter((view) => view.name !== name);
    if (rest.length > 0) localStorage.setItem(storageKey(page, person), JSON.stringify(rest));
    else localStorage.removeItem(storageKey(page, person));
  } catch {
    // The storage is blocked. The view is found again, and is then known to the portal.
  }
}

/** canonical returns a query without the question mark, and with its parameters in a fixed order, so that equal filters are equal texts. */
export function canonical(search: string): string {
  const params = new URLSearchParams(search);
  params.sort();
  return params.toString();
}

/** freeName returns the name, or the name with a number if it is in use. It is never longer than nameLimit. */
export function freeName(name: string, used: ReadonlySet<string>): string {
  const characters = [...name.trim()];
  const plain = characters.slice(0, nameLimit).join("").trim();
  if (!used.has(plain)) return plain;
  for (let n = 2; ; n++) {
    const end = ` (${n})`;
    const numbered = characters.slice(0, nameLimit - end.length).join("").trim() + end;
    if (!used.has(numbered)) return numbered;
  }
}

/** pathOf returns the path of the page with the filters of a view. */
export const pathOf = ({ page, query }: Pick<SavedView, "page" | "query">): string => `/${page}?${query}`;

/** linkPath returns the path of the link with which a view is shared. */
export const linkPath = (link: string): string => `/views/${encodeURIComponent(link)}`;

/** sharedState is the state of the history with which a page is opened from a shared view. */
export const sharedState = (link: string) => ({ sharedView: link });

/** sharedFrom returns the link of the shared view from which a page was opened, if there is one. */
export function sharedFrom(state: unknown): string | undefined {
  const link = typeof state === "object" && state !== null ? (state as Record<string, unknown>).sharedView : undefined;
  return typeof link === "string" && link !== "" ? link : undefined;
}
