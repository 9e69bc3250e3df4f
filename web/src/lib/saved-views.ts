/** Named filters, stored in this browser only. A bookmark of the address has the same content. */
export interface SavedView {
  name: string;
  search: string;
}

/** The page that the filters belong to. */
export type Place = "requests" | "flows";

const storageKey = (place: Place, person: string) => `acp-saved-${place}:${person}`;
const most = 20;
export const nameLimit = 60;

const isView = (value: unknown): value is SavedView =>
  typeof value === "object" && value !== null && typeof (value as Record<string, unknown>).name === "string" && typeof (value as Record<string, unknown>).search === "string";

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

/** A name says one thing: the later one wins. */
export function saveView(place: Place, person: string, view: SavedView): SavedView[] {
  return store(place, person, [view, ...savedViews(place, person).filter(({ name }) => name !== view.name)].slice(0, most));
}

export function forgetView(place: Place, person: string, name: string): SavedView[] {
  return store(place, person, savedViews(place, person).filter((view) => view.name !== name));
}
