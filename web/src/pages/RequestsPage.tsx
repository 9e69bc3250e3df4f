import { Button, Group, MultiSelect, SegmentedControl } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useTickets } from "../api/queries";
import type { TicketView } from "../api/queries";
import type { TicketState } from "../api/types";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import { ticketLooks } from "../components/states";
import { TicketTable } from "../components/TicketTable";
import { among, useFilters } from "../lib/use-filters";

const views = ["mine", "approvals", "decided", "all"] as const satisfies readonly TicketView[];
const states = Object.keys(ticketLooks) as TicketState[];

export function RequestsPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const view = among(search.getAll("view"), views)[0] ?? "mine";
  const state = among(search.getAll("state"), states);
  const application = search.get("application") ?? undefined;
  const resource = search.get("resource") ?? undefined;
  const query = useTickets({ view, ...(state.length > 0 ? { state } : {}), ...(application ? { application } : {}), ...(resource ? { resource } : {}) });
  const filtered = state.length > 0 || application !== undefined || resource !== undefined;

  const newRequest = (
    <Button component={Link} to="/requests/new" data-testid="new-request">
      {t("action.newRequest")}
    </Button>
  );

  return (
    <Page title={t("requests.title")} actions={newRequest}>
      <Group mb="md" gap="sm">
        <SegmentedControl
          size="sm"
          aria-label={t("requests.view")}
          data={views.map((each) => ({ value: each, label: t(`requests.views.${each}`) }))}
          value={view}
          onChange={(next) => change({ view: next === "mine" ? undefined : next })}
          data-testid="requests-view"
        />
        <MultiSelect
          aria-label={t("requests.state")}
          placeholder={state.length === 0 ? t("requests.anyState") : undefined}
          data={states.map((each) => ({ value: each, label: t(`ticketState.${each}`) }))}
          value={state}
          onChange={(next) => change({ state: next })}
          clearable
          miw={180}
          data-testid="requests-state"
        />
        {application && (
          <Button size="compact-sm" variant="light" rightSection={<IconX size={13} aria-hidden />} onClick={() => change({ application: undefined })} title={t("requests.removeFilter")}>
            {t("requests.aboutApplication", { id: application })}
          </Button>
        )}
        {resource && (
          <Button size="compact-sm" variant="light" rightSection={<IconX size={13} aria-hidden />} onClick={() => change({ resource: undefined })} title={t("requests.removeFilter")}>
            {t("requests.aboutResource", { id: resource })}
          </Button>
        )}
      </Group>
      <Loaded query={query}>
        {(data) => {
          const tickets = data.pages.flatMap((page) => page.items);
          if (tickets.length > 0) return <TicketTable tickets={tickets} label={t("requests.title")} requester={view !== "mine"} />;
          if (!filtered) return <EmptyState action={view === "mine" ? newRequest : undefined}>{t("requests.empty")}</EmptyState>;
          return (
            <EmptyState
              action={
                <Button variant="default" onClick={() => change({ state: undefined, application: undefined, resource: undefined })}>
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
