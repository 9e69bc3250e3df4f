/**
 * Stores the request that a person is entering in the storage of the tab, so that it is not lost when the session ends. It is restored only for
 * the same person and the same URL.
 */
const storageKey = "acp-request-draft";

interface Draft {
  person: string;
  /** The query of the page's URL. Links that prefill other values are other requests. */
  search: string;
  form: unknown;
}

/** saveDraft stores the draft for this tab. It does nothing if storage is blocked or full. */
export function saveDraft(draft: Draft): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(draft));
  } catch {
    // See above.
  }
}

/** clearDraft removes the stored draft. */
export function clearDraft(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // See above.
  }
}

/** loadDraft returns the stored draft, if this person typed it at this address and it still has the form's shape. */
export function loadDraft<T>(person: string, search: string, isForm: (value: unknown) => value is T): T | undefined {
  try {
    const draft: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? "null");
    if (typeof draft !== "object" || draft === null) return undefined;
    const { person: typedBy, search: typedAt, form } = draft as Record<string, unknown>;
    return typedBy === person && typedAt === search && isForm(form) ? form : undefined;
  } catch {
    return undefined;
  }
}
