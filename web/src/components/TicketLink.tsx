import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import classes from "./Tables.module.css";

/** Ticketed is a row that may have come from a ticket. */
interface Ticketed {
  ticket?: string | undefined;
  ticketVisible?: boolean | undefined;
  reason?: string | undefined;
}

/** TicketLink is a link to a ticket, or only its number if the reader may not see it. */
export function TicketLink({ of: { ticket, ticketVisible } }: { of: Ticketed }) {
  const { t } = useTranslation();
  if (!ticket) return <span className={classes.muted}>{t("access.noTicket")}</span>;
  return ticketVisible === false ? <span title={t("access.hiddenTicket")}>{ticket}</span> : <Link to={`/tickets/${ticket}`}>{ticket}</Link>;
}

/** Reason shows the reason that was given on the ticket of an access. */
export function Reason({ of: { ticket, ticketVisible, reason } }: { of: Ticketed }) {
  const { t } = useTranslation();
  if (reason) return <span className={classes.reason} title={reason} data-testid="reason">{reason}</span>;
  return ticket && ticketVisible === false ? <span className={classes.muted} title={t("access.hiddenTicket")}>{t("access.hiddenReason")}</span> : <span className={classes.muted}>{t("access.noReason")}</span>;
}
