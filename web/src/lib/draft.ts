/**
 * The request that is being typed, kept for this tab so that a login that ends in the middle loses nothing.
 * It belongs to the person who typed it and to the address it was typed at.
 */
const storageKey = "acp-request-draft";

interface Draft {
  person: string;
  /** The page's query: another prefilled link is another request. */
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
