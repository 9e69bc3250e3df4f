/** Filters that somebody named, kept in this browser. An address says the same, so losing them loses little. */
export interface SavedView {
  name: string;
  search: string;
}

const storageKey = "acp-saved-requests";
const most = 20;
export const nameLimit = 60;

const isView = (value: unknown): value is SavedView =>
  typeof value === "object" && value !== null && typeof (value as Record<string, unknown>).name === "string" && typeof (value as Record<string, unknown>).search === "string";

export function savedViews(person: string): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(`${storageKey}:${person}`) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isView) : [];
  } catch {
    return [];
  }
}

function store(person: string, views: SavedView[]): SavedView[] {
  try {
    localStorage.setItem(`${storageKey}:${person}`, JSON.stringify(views));
  } catch {
    // Storage may be blocked or full; the address still says it all.
  }
  return views;
}

/** A name says one thing: the later one wins. */
export function saveView(person: string, view: SavedView): SavedView[] {
  return store(person, [view, ...savedViews(person).filter(({ name }) => name !== view.name)].slice(0, most));
}

export function forgetView(person: string, name: string): SavedView[] {
  return store(person, savedViews(person).filter((view) => view.name !== name));
}
