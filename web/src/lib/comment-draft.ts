/**
 * Stores the comment of a decision that needs a new login in the storage of the tab while the person logs in. It is restored only for the same
 * person and the same ticket.
 */
const storageKey = "acp-decision-comment";

interface CommentDraft {
  person: string;
  ticket: string;
  comment: string;
}

/** saveComment stores the comment for this tab. It does nothing if storage is blocked or full. */
export function saveComment(draft: CommentDraft): void {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(draft));
  } catch {
    // See above.
  }
}

/** clearComment removes the stored comment. */
export function clearComment(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // See above.
  }
}

/** loadComment returns the stored comment, if this person typed it about this ticket, and otherwise an empty text. */
export function loadComment(person: string, ticket: string): string {
  try {
    const draft: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? "null");
    if (typeof draft !== "object" || draft === null) return "";
    const { person: typedBy, ticket: about, comment } = draft as Record<string, unknown>;
    return typedBy === person && about === ticket && typeof comment === "string" ? comment : "";
  } catch {
    return "";
  }
}
