import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useTickets } from "../api/queries";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import { RequestAccessLink } from "../components/RequestAccessLink";
import { requestFilterKeys, requestFilterOf, RequestFilters } from "../components/requests/RequestFilters";
import { SavedViews } from "../components/SavedViews";
import { TicketTable } from "../components/TicketTable";
import { useFilters } from "../lib/use-filters";
import { ticketOrders, useServerSort } from "../lib/use-server-sort";

const cleared = Object.fromEntries(requestFilterKeys.map((key) => [key, undefined]));

/** RequestsPage lists the tickets that match the filter in the URL. */
export function RequestsPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const filter = requestFilterOf(search);
  const query = useTickets({ ...filter, ...useServerSort(ticketOrders) });
  const filtered = requestFilterKeys.some((key) => search.has(key));
  const newRequest = <RequestAccessLink primary label={t("action.newRequest")} testId="new-request" />;

  return (
    <Page
      wide
      title={t("requests.title")}
      actions={
        <Group gap="sm">
          <SavedViews page="requests" query={search.toString()} />
          {newRequest}
        </Group>
      }
    >
      <RequestFilters search={search} onChange={change} />
      <Loaded query={query}>
        {(data) => {
          const tickets = data.pages.flatMap((page) => page.items);
          if (tickets.length > 0) return <TicketTable query={query} orders={ticketOrders} tickets={tickets} label={t("requests.title")} requester={filter.view !== "mine"} />;
          if (!filtered) return <EmptyState action={filter.view === "mine" ? newRequest : undefined}>{t(filter.view === "review" ? "requests.emptyReview" : "requests.empty")}</EmptyState>;
          return (
            <EmptyState
              action={
                <Button variant="default" onClick={() => change(cleared)}>
                  {t("action.clear")}
                </Button>
              }
            >
              {t("requests.noMatch")}
            </EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
