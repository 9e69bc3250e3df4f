import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useTickets } from "../api/queries";
import { EmptyState, Loaded } from "./Feedback";
import { Section } from "./Page";
import { TicketTable } from "./TicketTable";

const shown = 5;

/** TicketsSection shows the newest tickets about an application or a resource, and a link to all of them. */
export function TicketsSection({ about, id, empty }: { about: "application" | "resource"; id: string; empty: string }) {
  const { t } = useTranslation();
  const query = useTickets({ view: "all", [about]: id, limit: shown });
  return (
    <Section anchor="tickets" title={t("application.tickets")} aside={<Link to={`/requests?view=all&${about}=${encodeURIComponent(id)}`}>{t("home.seeAll")}</Link>} testId="tickets">
      <Loaded query={query}>
        {(data) => {
          const tickets = data.pages[0]?.items ?? [];
          return tickets.length === 0 ? <EmptyState>{empty}</EmptyState> : <TicketTable partial tickets={tickets} label={t("application.tickets")} />;
        }}
      </Loaded>
    </Section>
  );
}
