import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useHome, useMe, useTickets } from "../api/queries";
import type { Ticket } from "../api/types";
import { EmptyState, Loaded, RowsSkeleton } from "../components/Feedback";
import { NextRolloutSteps } from "../components/home/NextRolloutSteps";
import { DeniedConnections } from "../components/home/DeniedConnections";
import { ExpiringAccess } from "../components/home/ExpiringAccess";
import { DueProposalReviews } from "../components/home/DueProposalReviews";
import { EnforcementIssues } from "../components/home/EnforcementIssues";
import { MoreEntries } from "../components/home/MoreEntries";
import { PendingReviews, PendingApprovals } from "../components/home/PendingDecisions";
import { Page, Section } from "../components/Page";
import { WaitingReviews } from "../components/reviews/WaitingReviews";
import { RequestAccessLink } from "../components/RequestAccessLink";
import { TicketTable } from "../components/TicketTable";
import { isAtLeast } from "../lib/home";
import { useWords } from "../lib/use-words";

const shownTickets = 8;

/** underWayPath is the list of the reader's requests that are not at an end. */
const underWayPath = "/requests?state=pending&state=approved&state=applying&state=failed&state=revoking";

function UnderWay({ tickets, count }: { tickets: Ticket[]; count: number }) {
  const { t } = useTranslation();
  return (
    <Section title={t("home.underWay")} count={count} atLeast={isAtLeast(count)} aside={<Link to="/requests">{t("home.seeAll")}</Link>} testId="under-way">
      {tickets.length === 0 ? <EmptyState>{t("home.underWayEmpty")}</EmptyState> : <TicketTable partial tickets={tickets.slice(0, shownTickets)} label={t("home.underWay")} requester={false} />}
      <MoreEntries of="requests" count={count} shown={Math.min(tickets.length, shownTickets)} to={underWayPath} testId="under-way-more" />
    </Section>
  );
}

/** Latest shows recent requests of all people to readers who cannot request anything, such as auditors. */
function Latest() {
  const { t } = useTranslation();
  const words = useWords();
  const query = useTickets({ view: "all", limit: shownTickets });
  return (
    <Section title={t("home.latest")} aside={<Link to="/requests?view=all">{t("home.seeAll")}</Link>} testId="latest">
      <Loaded query={query}>
        {(data) => {
          const tickets = data.pages[0]?.items ?? [];
          if (tickets.length === 0) return <EmptyState>{t("home.latestEmpty")}</EmptyState>;
          return (
            <>
              <TicketTable partial tickets={tickets} label={t("home.latest")} />
              {data.pages[0]?.nextCursor && (
                <p data-testid="latest-more">
                  <Link to="/requests?view=all">{t("home.latestMore", { number: words.number(tickets.length) })}</Link>
                </p>
              )}
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

/** HomePage shows the person's pending decisions, requests and refused connections. For auditors it shows only the latest requests. */
export function HomePage() {
  const { t } = useTranslation();
  const me = useMe().data;
  const auditor = me?.roles.includes("auditor") ?? false;
  const security = me?.roles.includes("security") ?? false;
  const home = useHome(me !== undefined && !auditor);
  // Auditors have no decisions, requests or refused connections of their own.
  if (auditor) {
    return (
      <Page title={t("home.title")} sub={t("home.auditor")}>
        <Latest />
      </Page>
    );
  }
  return (
    <Page title={t("home.title")} actions={<RequestAccessLink primary testId="new-request" />}>
      <Loaded query={home} skeleton={<RowsSkeleton rows={6} />}>
        {(data) => (
          <>
            <PendingApprovals tickets={data.waiting} count={data.waitingCount ?? data.waiting.length} />
            <PendingReviews tickets={data.reviews} count={data.reviewsCount ?? data.reviews.length} />
            <WaitingReviews />
            <DueProposalReviews home={data} />
            <UnderWay tickets={data.underWay} count={data.underWayCount ?? data.underWay.length} />
            <DeniedConnections home={data} />
            {me?.roles.includes("resource-owner") && <NextRolloutSteps />}
            <ExpiringAccess home={data} />
            {(security || (data.stopped ?? []).length > 0) && <EnforcementIssues home={data} security={security} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}
