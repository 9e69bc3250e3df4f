/** RecentResource is a resource that this person requested recently in this browser. Such resources are only suggestions. */
export interface RecentResource {
  id: string;
  title: string;
  hint: string;
}

const storageKey = "acp-recent-resources";
const kept = 8;

interface Stored {
  person: string;
  items: RecentResource[];
}

const isText = (value: unknown): value is string => typeof value === "string";

function isStored(value: unknown): value is Stored {
  if (typeof value !== "object" || value === null) return false;
  const { person, items } = value as Record<string, unknown>;
  return isText(person) && Array.isArray(items) && items.every((item: Partial<Record<string, unknown>> | null) => item !== null && isText(item.id) && isText(item.title) && isText(item.hint));
}

/** recentResources returns the resources that this person requested recently in this browser. */
export function recentResources(person: string): RecentResource[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey) ?? "null");
    return isStored(stored) && stored.person === person ? stored.items : [];
  } catch {
    return [];
  }
}

/** rememberResources adds resources to those that this person requested recently. */
export function rememberResources(person: string, added: RecentResource[]): void {
  const ids = new Set(added.map(({ id }) => id));
  const items = [...added, ...recentResources(person).filter(({ id }) => !ids.has(id))].slice(0, kept);
  try {
    localStorage.setItem(storageKey, JSON.stringify({ person, items } satisfies Stored));
  } catch {
    // Storage may be blocked or full; then nothing is stored.
  }
}
