/**
 * Stores the input of a dialog in the storage of the tab while the person logs in. It is restored only for the same person, dialog and address, and only
 * for an hour. Dialogs whose input contains a secret must not store it.
 */
const storageKey = "acp-dialog-draft";

/** maxAge is the age in milliseconds from which stored input is not restored: the login was given up. */
const maxAge = 3_600_000;

/** DialogKey identifies the dialog of a person at an address. */
export interface DialogKey {
  person: string;
  dialog: string;
  /** The path and the query of the page. */
  address: string;
}

/** saveDialogDraft stores the values of a dialog for this tab. It does nothing if storage is blocked or full. */
export function saveDialogDraft(key: DialogKey, values: unknown, now: number): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify({ ...key, savedAt: now, values }));
  } catch {
    // See above.
  }
}

/** clearDialogDraft removes the stored values. */
export function clearDialogDraft(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // See above.
  }
}

/** loadDialogDraft returns the stored values of the dialog, if they are recent and have the form's shape. */
export function loadDialogDraft<T>(key: DialogKey, isValues: (value: unknown) => value is T, now = Date.now()): T | undefined {
  try {
    const draft: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? "null");
    if (typeof draft !== "object" || draft === null) return undefined;
    const { person, dialog, address, savedAt, values } = draft as Record<string, unknown>;
    if (person !== key.person || dialog !== key.dialog || address !== key.address) return undefined;
    return typeof savedAt === "number" && now - savedAt < maxAge && isValues(values) ? values : undefined;
  } catch {
    return undefined;
  }
}
