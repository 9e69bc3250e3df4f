import { useHotkeys } from "@mantine/hooks";
import { useRef } from "react";
import { Trans, useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router";
import { useTicket, useTickets } from "../api/queries";
import type { Ticket } from "../api/types";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Avatar } from "../components/Names";
import { Page } from "../components/Page";
import { TicketDetail } from "../components/TicketDetail";
import { useTicketHeading } from "../components/TicketTable";
import { Ago } from "../components/Time";
import classes from "./ApprovalsPage.module.css";

const path = (id: string) => `/approvals?ticket=${id}`;

function Item({ ticket, current }: { ticket: Ticket; current: boolean }) {
  const heading = useTicketHeading();
  return (
    <li>
      <Link className={classes.item} to={path(ticket.id)} replace preventScrollReset aria-current={current} data-testid={`approval-${ticket.id}`}>
        <Avatar name={ticket.requester.displayName} size={26} />
        <strong>{heading(ticket)}</strong>
        <small>
          <Ago at={ticket.createdAt} />
        </small>
        <small className={classes.line}>
          {ticket.requester.displayName} · {ticket.id}
        </small>
        <span className={classes.reason}>{ticket.reason}</span>
      </Link>
    </li>
  );
}

function Detail({ id, onDecided }: { id: string; onDecided: () => void }) {
  const query = useTicket(id);
  const heading = useTicketHeading();
  return (
    <Loaded query={query}>
      {(ticket) => (
        <>
          <h2 className={classes.heading}>{heading(ticket)}</h2>
          <TicketDetail ticket={ticket} narrow onDecided={onDecided} />
        </>
      )}
    </Loaded>
  );
}

function Both({ tickets, query }: { tickets: Ticket[]; query: Parameters<typeof LoadMore>[0]["query"] }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchParams();
  const detail = useRef<HTMLDivElement>(null);
  const chosen = search.get("ticket");
  // On a wide screen the first one is open already; a chosen one stays open after it was decided.
  const id = chosen ?? tickets[0]?.id;
  const index = tickets.findIndex((ticket) => ticket.id === id);

  const choose = (next: Ticket | undefined) => {
    if (next) setSearch({ ticket: next.id }, { replace: true, preventScrollReset: true });
  };
  const within = (testId: string) => detail.current?.querySelector<HTMLElement>(`[data-testid="${testId}"]`)?.focus();
  useHotkeys([
    ["j", () => choose(tickets[index + 1] ?? tickets[tickets.length - 1])],
    ["k", () => choose(tickets[Math.max(index - 1, 0)])],
    ["a", () => within("approve-button")],
    ["r", () => within("decision-comment")],
  ]);

  return (
    <div className={chosen ? `${classes.layout} ${classes.chosen}` : classes.layout}>
      <title>{`${t("approvals.title")} · ACP`}</title>
      <section className={classes.list} aria-label={t("approvals.list")}>
        <h1 className={classes.title}>{t("approvals.title")}</h1>
        <p className={classes.keys}>
          <Trans i18nKey="approvals.keys" components={{ k: <kbd /> }} />
        </p>
        {tickets.length === 0 && <EmptyState>{t("approvals.empty")}</EmptyState>}
        <ul className={classes.items} data-testid="approvals-list">
          {tickets.map((ticket) => (
            <Item key={ticket.id} ticket={ticket} current={ticket.id === id} />
          ))}
        </ul>
        <LoadMore query={query} />
      </section>
      <div className={classes.detail} ref={detail}>
        <Link className={classes.back} to="/approvals" replace>
          ← {t("approvals.back")}
        </Link>
        {id ? <Detail key={id} id={id} onDecided={() => setSearch({ ticket: id }, { replace: true, preventScrollReset: true })} /> : <EmptyState>{t("approvals.choose")}</EmptyState>}
      </div>
    </div>
  );
}

export function ApprovalsPage() {
  const { t } = useTranslation();
  const [search] = useSearchParams();
  const query = useTickets({ view: "approvals" });
  const tickets = query.data?.pages.flatMap((page) => page.items);
  if (tickets && (tickets.length > 0 || search.get("ticket"))) return <Both tickets={tickets} query={query} />;
  return (
    <Page title={t("approvals.title")}>
      <Loaded query={query}>
        {() => (
          <EmptyState testId="approvals-empty" action={<Link to="/requests?view=decided">{t("requests.views.decided")}</Link>}>
            {t("approvals.empty")} {t("approvals.emptyHint")}
          </EmptyState>
        )}
      </Loaded>
    </Page>
  );
}
