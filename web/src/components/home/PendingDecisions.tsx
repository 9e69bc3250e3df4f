import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Ticket } from "../../api/types";
import { isAtLeast } from "../../lib/home";
import { useHeading } from "../../lib/use-heading";
import { Avatar } from "../Avatar";
import { KindBadge } from "../Badge";
import { EmptyState } from "../Feedback";
import { Section } from "../Page";
import { RelativeTime } from "../Time";
import classes from "./Home.module.css";
import { MoreEntries } from "./MoreEntries";

function Card({ ticket, to }: { ticket: Ticket; to: string }) {
  const heading = useHeading();
  return (
    <li>
      <Link className={classes.card} to={to} data-testid={`waits-${ticket.id}`}>
        <Avatar name={ticket.requester.displayName} size={30} />
        <strong>{heading.ticket(ticket)}</strong>
        <span className={classes.muted}>
          <RelativeTime at={ticket.createdAt} />
        </span>
        <span className={classes.second}>
          {ticket.requester.displayName}: {ticket.reason}
        </span>
        {(ticket.kind !== "grant" || ticket.breakGlass) && (
          <span className={classes.badges}>
            <KindBadge kind={ticket.kind} breakGlass={ticket.breakGlass} />
          </span>
        )}
      </Link>
    </li>
  );
}

/** PendingApprovals lists the tickets that wait for the reader's decision, oldest first. */
export function PendingApprovals({ tickets, count }: { tickets: Ticket[]; count: number }) {
  const { t } = useTranslation();
  return (
    <Section title={t("home.waitsForMe")} count={count} atLeast={isAtLeast(count)} aside={<Link to="/approvals">{t("nav.approvals")}</Link>} testId="waits-for-me">
      {tickets.length === 0 ? (
        <EmptyState>{t("home.waitsEmpty")}</EmptyState>
      ) : (
        <ul className={classes.cards}>
          {tickets.map((ticket) => (
            <Card key={ticket.id} ticket={ticket} to={`/approvals?ticket=${ticket.id}`} />
          ))}
        </ul>
      )}
      <MoreEntries of="requests" count={count} shown={tickets.length} to="/approvals" testId="waits-more" />
    </Section>
  );
}

/** PendingReviews lists break-glass access that waits for the reader's review. It renders nothing if there is none. */
export function PendingReviews({ tickets, count }: { tickets: Ticket[]; count: number }) {
  const { t } = useTranslation();
  if (tickets.length === 0) return null;
  return (
    <Section title={t("home.reviews")} count={count} atLeast={isAtLeast(count)} aside={<Link to="/requests?view=review">{t("home.seeAll")}</Link>} testId="reviews">
      <ul className={classes.cards}>
        {tickets.map((ticket) => (
          <Card key={ticket.id} ticket={ticket} to={`/tickets/${ticket.id}`} />
        ))}
      </ul>
      <MoreEntries of="requests" count={count} shown={tickets.length} to="/requests?view=review" testId="reviews-more" />
    </Section>
  );
}
