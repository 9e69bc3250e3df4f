import { Button } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { applicationConnections, refused, useApplications, useMe, useTickets } from "../api/queries";
import type { Application, ConnectionList, Ticket, TicketState } from "../api/types";
import { ConnectionsTable } from "../components/ConnectionsTable";
import { EmptyState, ErrorState, Loaded, RowsSkeleton } from "../components/Feedback";
import { Avatar } from "../components/Names";
import { Page, Section } from "../components/Page";
import { TicketTable, useTicketHeading } from "../components/TicketTable";
import { Ago } from "../components/Time";
import classes from "./HomePage.module.css";

const underWay: TicketState[] = ["pending", "approved", "applying", "revoking", "failed"];
const shownTickets = 8;
const shownConnections = 12;
/** Each application asks once; beyond this many the list of applications is the better place. */
const askedApplications = 8;

function WaitsForMe() {
  const { t } = useTranslation();
  const heading = useTicketHeading();
  const query = useTickets({ view: "approvals", limit: shownTickets });
  const me = useMe();
  return (
    <Section title={t("home.waitsForMe")} count={me.data?.pendingApprovals} aside={<Link to="/approvals">{t("nav.approvals")}</Link>} testId="waits-for-me">
      <Loaded query={query} skeleton={<RowsSkeleton rows={2} />}>
        {(data) => {
          const tickets = data.pages[0]?.items ?? [];
          if (tickets.length === 0) return <EmptyState>{t("home.waitsEmpty")}</EmptyState>;
          return (
            <ul className={classes.waits}>
              {tickets.map((ticket: Ticket) => (
                <li key={ticket.id}>
                  <Link className={classes.card} to={`/approvals?ticket=${ticket.id}`}>
                    <Avatar name={ticket.requester.displayName} size={30} />
                    <strong>{heading(ticket)}</strong>
                    <span className={classes.muted}>
                      <Ago at={ticket.createdAt} />
                    </span>
                    <span className={classes.second}>
                      {ticket.requester.displayName}: {ticket.reason}
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Section>
  );
}

function UnderWay() {
  const { t } = useTranslation();
  const query = useTickets({ view: "mine", state: underWay, limit: shownTickets });
  return (
    <Section title={t("home.underWay")} aside={<Link to="/requests">{t("home.seeAll")}</Link>} testId="under-way">
      <Loaded query={query} skeleton={<RowsSkeleton rows={2} />}>
        {(data) => {
          const tickets = data.pages[0]?.items ?? [];
          if (tickets.length === 0) return <EmptyState>{t("home.underWayEmpty")}</EmptyState>;
          return <TicketTable tickets={tickets} label={t("home.underWay")} requester={false} />;
        }}
      </Loaded>
    </Section>
  );
}

/** One list out of each application's, newest first. */
function merge(lists: ConnectionList[]): ConnectionList | undefined {
  const first = lists[0];
  if (!first) return undefined;
  return {
    ...first,
    available: lists.every((list) => list.available),
    items: lists.flatMap((list) => list.items).sort((a, b) => Date.parse(b.lastSeen) - Date.parse(a.lastSeen)),
  };
}

function RefusedRows({ applications }: { applications: Application[] }) {
  const { t } = useTranslation();
  // An application of which nothing is known is asked too: the answer says whether the store is away.
  const asked = applications.filter((app) => app.denied24h !== 0).slice(0, askedApplications);
  const { list, pending, error, retry } = useQueries({
    queries: asked.map((app) => applicationConnections(app.id, refused)),
    combine: (results) => ({
      list: merge(results.flatMap((result) => (result.data ? [result.data] : []))),
      pending: results.some((result) => result.isPending),
      error: results.find((result) => result.error)?.error,
      retry: () => results.forEach((result) => void result.refetch()),
    }),
  });
  if (asked.length === 0) return <EmptyState>{t("home.refusedEmpty")}</EmptyState>;
  if (list) return <ConnectionsTable list={list} peer="both" label={t("home.refused")} empty={t("home.refusedEmpty")} request limit={shownConnections} />;
  if (error) return <ErrorState error={error} onRetry={retry} />;
  return pending ? <RowsSkeleton /> : null;
}

function Refused() {
  const { t } = useTranslation();
  const query = useApplications({ mine: true });
  return (
    <Section title={t("home.refused")} aside={<Link to="/applications">{t("nav.applications")}</Link>} testId="refused">
      <Loaded query={query}>
        {(data) => {
          const applications = data.pages.flatMap((page) => page.items);
          if (applications.length === 0) return <EmptyState>{t("home.noApplications")}</EmptyState>;
          return <RefusedRows applications={applications} />;
        }}
      </Loaded>
    </Section>
  );
}

export function HomePage() {
  const { t } = useTranslation();
  return (
    <Page
      title={t("home.title")}
      actions={
        <Button component={Link} to="/requests/new" data-testid="new-request">
          {t("action.requestAccess")}
        </Button>
      }
    >
      <WaitsForMe />
      <UnderWay />
      <Refused />
    </Page>
  );
}
