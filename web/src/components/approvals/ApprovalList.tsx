import { Checkbox } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Ticket } from "../../api/types";
import { useHeading } from "../../lib/use-heading";
import { Avatar } from "../Avatar";
import { KindBadge } from "../Badge";
import { RelativeTime } from "../Time";
import classes from "./Approvals.module.css";

interface ItemProps {
  ticket: Ticket;
  to: string;
  current: boolean;
  selected: boolean;
  onSelect: () => void;
}

function Item({ ticket, to, current, selected, onSelect }: ItemProps) {
  const { t } = useTranslation();
  const heading = useHeading();
  const what = heading.ticket(ticket);
  return (
    <li className={classes.entry} data-selected={selected || undefined}>
      <Checkbox className={classes.check} size="xs" checked={selected} onChange={onSelect} aria-label={t("approvals.select", { id: ticket.id })} data-testid={`select-${ticket.id}`} />
      <Link className={classes.item} to={to} replace preventScrollReset aria-current={current} data-testid={`approval-${ticket.id}`}>
        <Avatar name={ticket.requester.displayName} size={26} />
        <strong>{what}</strong>
        <small>
          <RelativeTime at={ticket.createdAt} />
        </small>
        <small className={classes.line}>
          {ticket.requester.displayName} · {ticket.id} <KindBadge kind={ticket.kind} breakGlass={ticket.breakGlass} />
        </small>
        <span className={classes.reason}>{ticket.reason}</span>
      </Link>
    </li>
  );
}

interface Props {
  tickets: Ticket[];
  current: string | undefined;
  pathOf: (id: string) => string;
  selection: ReadonlySet<string>;
  onSelect: (id: string) => void;
}

/** ApprovalList lists the tickets that wait for a decision, with boxes to select them. */
export function ApprovalList({ tickets, current, pathOf, selection, onSelect }: Props) {
  return (
    <ul className={classes.items} data-testid="approvals-list">
      {tickets.map((ticket) => (
        <Item key={ticket.id} ticket={ticket} to={pathOf(ticket.id)} current={ticket.id === current} selected={selection.has(ticket.id)} onSelect={() => onSelect(ticket.id)} />
      ))}
    </ul>
  );
}
