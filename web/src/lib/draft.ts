/**
 * The request that is being typed, kept for this tab so that a login that ends in the middle loses nothing.
 * It belongs to the person who typed it and to the address it was typed at.
 */
import { durationChoices } from "./request";
import type { RequestForm } from "./request";

const storageKey = "acp-request-draft";

/** Actions only when the person chose them: the usual ones are known once the resource is. */
export type DraftForm = Omit<RequestForm, "actions"> & { actions?: string[] | undefined };

interface Draft {
  person: string;
  /** The page's query: another prefilled link is another request. */
  search: string;
  form: DraftForm;
}

const isText = (value: unknown): value is string => typeof value === "string";

function isForm(value: unknown): value is DraftForm {
  if (typeof value !== "object" || value === null) return false;
  const form = value as Record<string, unknown>;
  return (
    isText(form.application) && isText(form.resource) && isText(form.reason) &&
    (form.actions === undefined || (Array.isArray(form.actions) && form.actions.every(isText))) &&
    durationChoices.some((choice) => choice === form.duration) &&
    (form.customAmount === undefined || typeof form.customAmount === "number") &&
    (form.customUnit === "hours" || form.customUnit === "days")
  );
}

/** Storage may be blocked or full; then nothing is kept, and nothing else changes. */
export function saveDraft(draft: Draft): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(draft));
  } catch {
    // See above.
  }
}

export function clearDraft(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // See above.
  }
}

export function loadDraft(person: string, search: string): DraftForm | undefined {
  try {
    const draft: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? "null");
    if (typeof draft !== "object" || draft === null) return undefined;
    const { person: typedBy, search: typedAt, form } = draft as Record<string, unknown>;
    return typedBy === person && typedAt === search && isForm(form) ? form : undefined;
  } catch {
    return undefined;
  }
}
