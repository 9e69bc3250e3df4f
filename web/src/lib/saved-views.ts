/** SavedView is a named filter, stored in this browser only. A bookmark of the URL has the same content. */
export interface SavedView {
  name: string;
  search: string;
}

/** Place is the page that the filters belong to. */
export type Place = "requests" | "flows";

const storageKey = (place: Place, person: string) => `acp-saved-${place}:${person}`;
const most = 20;
/** nameLimit is the maximum length of a view's name in characters. */
export const nameLimit = 60;

const isView = (value: unknown): value is SavedView =>
  typeof value === "object" && value !== null && typeof (value as Record<string, unknown>).name === "string" && typeof (value as Record<string, unknown>).search === "string";

/** savedViews returns the views that this person saved for the page. */
export function savedViews(place: Place, person: string): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey(place, person)) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isView) : [];
  } catch {
    return [];
  }
}

function store(place: Place, person: string, views: SavedView[]): SavedView[] {
  try {
    localStorage.setItem(storageKey(place, person), JSON.stringify(views));
  } catch {
    // Storage may be blocked or full; the address still says it all.
  }
  return views;
}

/** saveView saves a view and returns all views. It replaces an earlier view of the same name. */
export function saveView(place: Place, person: string, view: SavedView): SavedView[] {
  return store(place, person, [view, ...savedViews(place, person).filter(({ name }) => name !== view.name)].slice(0, most));
}

/** forgetView removes a view and returns the remaining ones. */
export function forgetView(place: Place, person: string, name: string): SavedView[] {
  return store(place, person, savedViews(place, person).filter((view) => view.name !== name));
}
