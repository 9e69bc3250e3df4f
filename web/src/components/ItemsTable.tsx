import { UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Ticket, TicketItem } from "../api/types";
import { ticketItemsCSV } from "../lib/tables/requests";
import { itemsThatMay } from "../lib/items";
import { useHeading } from "../lib/use-heading";
import { useWords } from "../lib/use-words";
import { SensitivityBadge, TicketStateBadge } from "./Badge";
import { ItemActions } from "./ItemActions";
import { ItemFlowsLink } from "./ItemFlowsLink";
import classes from "./ItemsTable.module.css";
import { TableDownload } from "./TableDownload";
import { TicketProgress } from "./TicketProgress";
import { Timeline } from "./Timeline";

function Row({ ticket, item, open, onToggle }: { ticket: Ticket; item: TicketItem; open: boolean; onToggle: () => void }) {
  const heading = useHeading();
  const words = useWords();
  const id = useId();
  const Chevron = open ? IconChevronDown : IconChevronRight;
  return (
    <li className={classes.item} data-testid={`item-${item.position}`} data-value={item.state}>
      <div className={classes.row}>
        <UnstyledButton className={classes.toggle} aria-expanded={open} aria-controls={id} onClick={onToggle} data-testid={`item-toggle-${item.position}`}>
          <Chevron size={16} aria-hidden />
          <span>{heading.item(item, ticket.kind)}</span>
        </UnstyledButton>
        <div className={classes.badges}>
          {item.sensitivity && <SensitivityBadge sensitivity={item.sensitivity} />}
          <TicketStateBadge state={item.state} testId={`item-state-${item.position}`} />
        </div>
        <div className={classes.second}>
          {item.workload && <code>{item.workload.before.length > 0 ? `${words.list(item.workload.before)} → ` : ""}{words.list(item.workload.after)}</code>}
          {item.actions && item.actions.length > 0 && <code>{words.list(item.actions)}</code>}
          <TicketProgress items={[item]} />
          <ItemFlowsLink item={item} kind={ticket.kind} />
        </div>
        <div className={classes.actions}>
          <ItemActions ticket={ticket} item={item} />
        </div>
      </div>
      <div id={id} className={classes.line} hidden={!open}>
        {open && (
          <>
            {item.message && <p className={classes.message}>{words.message(item.message)}</p>}
            <Timeline ticket={ticket} item={item} />
          </>
        )}
      </div>
    </li>
  );
}

/** ItemsTable lists several items; each row opens the item's timeline. */
export function ItemsTable({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const [toggled, setToggled] = useState<ReadonlyMap<number, boolean>>(new Map());
  // The item that waits for the reader is open, otherwise the first one, because it has the comments.
  const first = (itemsThatMay(ticket, "approve")[0] ?? ticket.items[0])?.position;
  return (
    <>
      <ul className={classes.items} aria-label={t("ticket.items")} data-testid="items">
        {ticket.items.map((item) => {
          const open = toggled.get(item.position) ?? item.position === first;
          return <Row key={item.position} ticket={ticket} item={item} open={open} onToggle={() => setToggled(new Map(toggled).set(item.position, !open))} />;
        })}
      </ul>
      <TableDownload csv={ticketItemsCSV(ticket.id)} rows={ticket.items} />
    </>
  );
}
