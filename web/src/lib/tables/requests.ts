/** Tables of requests, their items and delegations, as files. */
import type { Delegation, Ticket, TicketItem, Use } from "../../api/types";
import type { CsvTable } from "../csv";
import { lastUsed, person } from "./cells";

/** itemText returns what an item of a ticket is about. */
const itemText = ({ application, resource, object }: TicketItem): string =>
  [application?.title, resource?.title, object?.name].filter((each) => each !== undefined).join(" → ");

/** ticketsCSV is the table of requests. */
export const ticketsCSV: CsvTable<Ticket> = {
  file: "requests",
  columns: {
    ticket: (row) => row.id,
    kind: (row) => row.kind,
    state: (row) => row.state,
    "break glass": (row) => row.breakGlass ?? false,
    requester: (row) => person(row.requester),
    items: (row) => row.items.map(itemText),
    actions: (row) => [...new Set(row.items.flatMap(({ actions }) => actions ?? []))],
    reason: (row) => row.reason,
    message: (row) => row.message?.text,
    created: (row) => row.createdAt,
    updated: (row) => row.updatedAt,
  },
};

/** ticketItemsCSV is the table of the items of a ticket. */
export const ticketItemsCSV = (ticket: string): CsvTable<TicketItem> => ({
  file: `items-${ticket}`,
  columns: {
    position: (row) => row.position,
    item: itemText,
    state: (row) => row.state,
    actions: (row) => row.actions,
    workload: (row) => row.workload?.id,
    ends: (row) => row.expiresAt,
    message: (row) => row.message?.text,
  },
});

/** expiringCSV is the table of accesses that end soon. */
export const expiringCSV: CsvTable<{ ticket: Ticket; item: TicketItem; asked: string | undefined; use: Use }> = {
  file: "expiring-access",
  columns: { ticket: ({ ticket }) => ticket.id, item: ({ item }) => itemText(item), actions: ({ item }) => item.actions, ends: ({ item }) => item.expiresAt, "last used": ({ use }) => lastUsed(use), reason: ({ ticket }) => ticket.reason, "extension requested in": ({ asked }) => asked },
};

/** delegationsCSV is the table of delegations. */
export const delegationsCSV: CsvTable<Delegation> = {
  file: "delegations",
  columns: {
    from: (row) => person(row.from),
    to: (row) => person(row.to),
    start: (row) => row.start,
    end: (row) => row.end,
    "ended at": (row) => row.endedAt,
    reason: (row) => row.reason,
    active: (row) => row.active,
  },
};
