import type { Ticket, TicketItem } from "../api/types";
import { currentStep } from "./items";

/** waitingItems returns the items of a ticket that the reader may decide. */
export const waitingItems = (ticket: Ticket): TicketItem[] => ticket.items.filter((item) => item.can.approve || item.can.reject);

/**
 * progress contains the fields of an item that change while it is decided and applied without a change of what is decided. A field that is not listed
 * counts as a part of what is decided.
 */
const progress: ReadonlySet<string> = new Set(["state", "steps", "review", "can", "members", "clusters", "nodes", "message", "waitingFor"] satisfies (keyof TicketItem)[]);

/**
 * decisionContent returns a text that differs between two versions of a ticket if what the reader decides about differs: the items that wait for them,
 * what each would grant or change, the step that they decide, and the steps that follow. Comments, votes and reminders do not change it.
 */
export function decisionContent(ticket: Ticket): string {
  const items = waitingItems(ticket).map((item) => ({
    ...Object.fromEntries(Object.entries(item).filter(([field]) => !progress.has(field))),
    may: [item.can.approve, item.can.reject],
    step: currentStep(item)?.name,
    steps: item.steps.map(({ name, quorum }) => [name, quorum]),
  }));
  return JSON.stringify([ticket.kind, ticket.reason, ticket.breakGlass, ticket.adopt, ticket.override, items]);
}
