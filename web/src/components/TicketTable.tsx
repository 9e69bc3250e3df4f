import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Ticket } from "../api/types";
import { ticketsCSV } from "../lib/tables/requests";
import { expiryOfTicket } from "../lib/items";
import type { TicketOrder } from "../lib/use-server-sort";
import { useHeading } from "../lib/use-heading";
import { useWords } from "../lib/use-words";
import { KindBadge, TicketStateBadge } from "./Badge";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import type { Pages } from "./TableDownload";
import { TicketProgress } from "./TicketProgress";
import { PersonName } from "./Names";
import classes from "./Tables.module.css";
import { RelativeTime } from "./Time";
import { instant } from "../lib/table-sort";

interface Props {
  tickets: Ticket[];
  label: string;
  requester?: boolean;
  partial?: boolean;
  /** The query of the tickets, which reads the remaining tickets for the file. */
  query?: Pages<Ticket>;
  /** The orders in which the server returns the tickets; the table then shows the last change, too. */
  orders?: readonly TicketOrder[];
}

/** TicketTable lists tickets with their state, requester, progress and time of submission. */
export function TicketTable({ tickets, label, requester = true, partial, query, orders }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  const columns: Column<Ticket>[] = [
    {
      key: "request",
      header: t("requests.request"),
      sortBy: (ticket) => heading.ticket(ticket),
      cell: (ticket) => (
        <span className={classes.stack}>
          <Link className={classes.title} to={`/tickets/${ticket.id}`}>{heading.ticket(ticket)}</Link>
          <span className={`${classes.muted} ${classes.oneLine}`} title={ticket.reason}>
            {ticket.id} · {ticket.reason}
          </span>
        </span>
      ),
    },
    {
      key: "state",
      header: t("requests.stateColumn"),
      sortBy: (ticket) => t(`ticketState.${ticket.state}`),
      cell: (ticket) => (
        <span className={classes.badges}>
          <TicketStateBadge state={ticket.state} />
          <KindBadge kind={ticket.kind} breakGlass={ticket.breakGlass} />
        </span>
      ),
    },
  ];
  if (requester) columns.push({ key: "requester", header: t("requests.requester"), cell: (ticket) => <PersonName person={ticket.requester} />, sortBy: (ticket) => ticket.requester.displayName });
  columns.push(
    {
      key: "progress",
      header: t("requests.progress"),
      cell: (ticket) => {
        const message = ticket.message ?? (ticket.items.length === 1 ? ticket.items[0]?.message : undefined);
        const expires = expiryOfTicket(ticket);
        return (
          <span className={classes.stack}>
            <TicketProgress items={ticket.items} testId={`live-line-${ticket.id}`} />
            {message && <span className={classes.muted}>{words.message(message)}</span>}
            {expires && (
              <span className={classes.muted}>
                {t("ticket.expires")} <RelativeTime at={expires} />
              </span>
            )}
          </span>
        );
      },
    },
    { key: "created", header: t("requests.created"), nowrap: true, cell: (ticket) => <RelativeTime at={ticket.createdAt} />, sortBy: (ticket) => instant(ticket.createdAt) },
  );
  if (orders) columns.push({ key: "updated", header: t("requests.updated"), nowrap: true, cell: (ticket) => <RelativeTime at={ticket.updatedAt} />, sortBy: (ticket) => instant(ticket.updatedAt) });
  return <DataTable partial={partial} query={query} csv={ticketsCSV} orders={orders} label={label} columns={columns} rows={tickets} rowKey={(ticket) => ticket.id} rowTestId={(ticket) => `ticket-row-${ticket.id}`} testId="ticket-table" />;
}
