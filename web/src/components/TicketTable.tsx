import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Ticket } from "../api/types";
import { TicketStateBadge } from "./Badge";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { LiveLine } from "./LiveLine";
import { PersonName } from "./Names";
import classes from "./Tables.module.css";
import { Ago } from "./Time";

/** A ticket's heading in words; one place, because lists, the page and the document's title share it. */
export function useTicketHeading() {
  const { t } = useTranslation();
  return (ticket: Ticket): string => {
    const item = ticket.items[0];
    return item ? t("ticket.heading", { application: item.application.title, resource: item.resource.title }) : ticket.id;
  };
}

export function TicketTable({ tickets, label, requester = true }: { tickets: Ticket[]; label: string; requester?: boolean }) {
  const { t } = useTranslation();
  const heading = useTicketHeading();
  const columns: Column<Ticket>[] = [
    {
      key: "request",
      header: t("requests.request"),
      cell: (ticket) => (
        <span className={classes.stack}>
          <Link className={classes.title} to={`/tickets/${ticket.id}`}>{heading(ticket)}</Link>
          <span className={classes.muted}>{ticket.id}</span>
        </span>
      ),
    },
    { key: "state", header: t("requests.stateColumn"), cell: (ticket) => <TicketStateBadge state={ticket.state} /> },
  ];
  if (requester) columns.push({ key: "requester", header: t("requests.requester"), cell: (ticket) => <PersonName person={ticket.requester} /> });
  columns.push(
    {
      key: "progress",
      header: t("requests.progress"),
      cell: (ticket) => (
        <span className={classes.stack}>
          <LiveLine ticket={ticket} />
          {ticket.message && <span className={classes.muted}>{ticket.message}</span>}
        </span>
      ),
    },
    { key: "created", header: t("requests.created"), nowrap: true, cell: (ticket) => <Ago at={ticket.createdAt} /> },
  );
  return <DataTable label={label} columns={columns} rows={tickets} rowKey={(ticket) => ticket.id} rowTestId={(ticket) => `ticket-row-${ticket.id}`} testId="ticket-table" />;
}
