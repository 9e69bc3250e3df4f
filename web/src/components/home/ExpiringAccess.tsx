import { Button, Menu } from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Home, Ticket, TicketItem, Use } from "../../api/types";
import { expiringCSV } from "../../lib/tables/requests";
import { itemFlowsPath } from "../../lib/flow-link";
import { secondsPerDay } from "../../lib/time";
import { textLimit } from "../../lib/request";
import { useHeading } from "../../lib/use-heading";
import { useSend } from "../../lib/use-send";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import { ExtendDialog } from "../ExtendDialog";
import { ErrorState } from "../Feedback";
import { LastUse } from "../LastUse";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import { Reason } from "../TicketLink";
import { RelativeTime } from "../Time";
import { useToast } from "../toast-context";
import classes from "./Home.module.css";
import { MoreEntries } from "./MoreEntries";
import { instant } from "../../lib/table-sort";

const days = [7, 30, 90] as const;

const expiringPath = "/requests?view=owned&kind=grant&kind=extend&expiring=14";

/** ending contains the states in which an item gives access, or is about to. */
const ending: readonly TicketItem["state"][] = ["approved", "applying", "effective", "failed"];

interface Row {
  ticket: Ticket;
  item: TicketItem;
  /** The id of the ticket in which the access is already requested. */
  asked: string | undefined;
  use: Use;
}

function rowsOf({ expiring, expiringUntil, expiringRequested = [], expiringUses = [] }: Home): Row[] {
  const soon = ({ expiresAt, state }: TicketItem) => expiresAt !== undefined && ending.includes(state) && (expiringUntil === undefined || Date.parse(expiresAt) <= Date.parse(expiringUntil));
  return expiring
    .flatMap((ticket) =>
      ticket.items
        .filter(soon)
        .map((item) => {
          const isIt = (each: { ticket: string; item: number }) => each.ticket === ticket.id && each.item === item.position;
          return { ticket, item, asked: expiringRequested.find(isIt)?.requestedIn, use: expiringUses.find(isIt) };
        }),
    )
    .sort((a, b) => (a.item.expiresAt ?? "").localeCompare(b.item.expiresAt ?? ""));
}

/** Extend requests an extension by choosing a duration, with the reason of the grant. The dialog allows another reason. */
function Extend({ row }: { row: Row }) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  const toast = useToast();
  const [open, setOpen] = useState(false);
  const { send, create } = useSend();
  const { ticket, item } = row;
  const asked = create.data?.id ?? row.asked;
  if (asked) {
    return (
      <span className={tables.sentence} data-testid={`extension-of-${ticket.id}`}>
        {t("extend.requestedIn")} <Link to={`/tickets/${asked}`}>{asked}</Link>
      </span>
    );
  }
  const ask = (count: number) => {
    const reason = t("extend.reason", { reason: ticket.reason }).slice(0, textLimit);
    send({ kind: "extend", items: [{ target: { ticket: ticket.id, item: item.position } }], durationSeconds: count * secondsPerDay, reason }, (made) => toast(t("extend.done", { id: made.id })));
  };
  return (
    <div className={classes.asks}>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="compact-sm" variant="light" loading={create.isPending} rightSection={<IconChevronDown size={13} aria-hidden />} aria-label={t("extend.of", { what: heading.item(item, "grant") })} data-testid={`extend-${ticket.id}`}>
            {t("decide.extend")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {days.map((count) => (
            <Menu.Item key={count} onClick={() => ask(count)} data-testid={`extend-${ticket.id}-${count}`}>
              {words.duration(count * secondsPerDay)}
            </Menu.Item>
          ))}
          <Menu.Item onClick={() => setOpen(true)}>{t("extend.other")}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {create.error ? <ErrorState error={create.error} title={t("error.actionTitle")} /> : null}
      {open && <ExtendDialog of={{ ticket: ticket.id, item: item.position, heading: heading.item(item, "grant"), reason: ticket.reason }} onClose={() => setOpen(false)} />}
    </div>
  );
}

/** ExpiringAccess lists grants that end soon. It renders nothing if there is none. */
export function ExpiringAccess({ home }: { home: Home }) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  const rows = rowsOf(home);
  if (rows.length === 0) return null;
  const { expiring, expiringCount = expiring.length } = home;
  // The portal counts tickets, and a row is one access of a ticket, so that the number of all rows is known only if all tickets are there.
  const count = expiringCount > expiring.length ? undefined : rows.length;
  return (
    <Section title={t("home.expiring")} count={count} aside={<Link to={expiringPath}>{t("home.seeAll")}</Link>} testId="expiring">
      <DataTable
        label={t("home.expiring")}
        rows={rows}
        rowKey={({ ticket, item }) => `${ticket.id}/${item.position}`}
        rowTestId={({ ticket }) => `expiring-${ticket.id}`}
        partial={expiringCount > expiring.length}
        sortParam="expiring-sort"
        csv={expiringCSV}
        columns={[
          {
            key: "what",
            header: t("requests.request"),
            sortBy: ({ ticket, item }) => item.resource?.title ?? ticket.id,
            cell: ({ ticket, item }) => (
              <span className={tables.stack}>
                <Link className={tables.title} to={`/tickets/${ticket.id}`}>{heading.item(item, "grant")}</Link>
                <span className={tables.muted}>
                  {ticket.id} · {words.list(item.actions ?? [])}
                </span>
              </span>
            ),
          },
          { key: "ends", header: t("ticket.expires"), nowrap: true, cell: ({ item }) => item.expiresAt && <RelativeTime at={item.expiresAt} />, sortBy: ({ item }) => instant(item.expiresAt) },
          { key: "used", header: t("access.lastUsed"), nowrap: true, cell: ({ ticket, item, use }) => <LastUse use={use} to={itemFlowsPath(item, ticket.kind)} label={t("ticket.flowsOf", { item: heading.item(item, "grant") })} />, sortBy: ({ use }) => instant(use?.lastUsed) },
          { key: "reason", header: t("access.reason"), cell: ({ ticket }) => <Reason of={{ ticket: ticket.id, reason: ticket.reason }} /> },
          { key: "extend", header: t("action.column"), silent: true, end: true, cell: (row) => (row.item.can.extend || row.asked ? <Extend row={row} /> : null) },
        ]}
      />
      <MoreEntries of="requests" count={expiringCount} shown={expiring.length} to={expiringPath} testId="expiring-more" />
    </Section>
  );
}
