import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { useTicket } from "../api/queries";
import { Loaded } from "../components/Feedback";
import { Page } from "../components/Page";
import { TicketDetail } from "../components/TicketDetail";
import { useHeading } from "../lib/use-heading";

/** TicketPage shows one ticket. */
export function TicketPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const query = useTicket(id);
  const heading = useHeading();
  return (
    <Page wide title={query.data ? `${id} ${heading.ticket(query.data)}` : id} heading={query.data ? heading.ticket(query.data) : id} crumbs={[{ to: "/requests", label: t("requests.title") }, { label: id }]}>
      <Loaded query={query}>{(ticket) => <TicketDetail key={ticket.id} ticket={ticket} />}</Loaded>
    </Page>
  );
}
