/** The input of the dialog that decides several tickets. Pure. */

/** BulkVerb is the decision about all selected tickets. */
export type BulkVerb = "approve" | "reject";

/** BulkDraft contains the input: the decision, the ids of the selected tickets, and the comment. */
export interface BulkDraft {
  verb: BulkVerb;
  tickets: string[];
  comment: string;
}

/** isBulkDraft reports whether a stored value has the shape of the input. */
export function isBulkDraft(value: unknown): value is BulkDraft {
  if (typeof value !== "object" || value === null) return false;
  const { verb, tickets, comment } = value as Record<string, unknown>;
  return (verb === "approve" || verb === "reject") && Array.isArray(tickets) && tickets.every((each) => typeof each === "string") && typeof comment === "string";
}
