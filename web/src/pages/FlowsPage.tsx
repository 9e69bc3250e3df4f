import { ActionIcon, Button, Tabs } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useIsFetching, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { useFlows } from "../api/flows";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { FlowDrawer } from "../components/flows/FlowDrawer";
import { FlowFilters } from "../components/flows/FlowFilters";
import { FlowTable } from "../components/flows/FlowTable";
import { LossBanner } from "../components/flows/LossBanner";
import { FlowLosses } from "../components/flows/FlowLosses";
import { RawFlows } from "../components/flows/RawFlows";
import { FlowTimeSeries } from "../components/flows/FlowTimeSeries";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import pageClasses from "../components/Page.module.css";
import { SavedViews } from "../components/SavedViews";
import { RelativeTime } from "../components/Time";
import { connectionKey } from "../lib/connection-key";
import { filterKeys, flowFilterOf, isFiltered } from "../lib/flow-filter";
import type { FlowFilter } from "../lib/flow-filter";
import { among, applyChange, useFilters } from "../lib/use-filters";
import type { FilterChange } from "../lib/use-filters";
import { connectionOrdersOf, useServerSort } from "../lib/use-server-sort";
import { keys } from "../api/keys";

const tabs = ["connections", "disagreements", "raw", "losses"] as const;
type Tab = (typeof tabs)[number];

/** tabOf returns the tab of the URL. Disagreements are a filter, so that a link can select them; the other tabs are separate views. */
function tabOf(search: URLSearchParams): Tab {
  const tab = among(search.getAll("tab"), ["raw", "losses"] as const)[0];
  return tab ?? (search.get("disagree") === "true" ? "disagreements" : "connections");
}

const tabChange: Record<Tab, FilterChange> = {
  connections: { tab: undefined, disagree: undefined, row: undefined },
  disagreements: { tab: undefined, disagree: "true", row: undefined },
  raw: { tab: "raw", disagree: undefined, row: undefined },
  losses: { tab: "losses", disagree: undefined, row: undefined },
};

interface Props {
  filter: FlowFilter;
  search: URLSearchParams;
  onChange: (change: FilterChange) => void;
}

const cleared = Object.fromEntries(filterKeys.map((key) => [key, undefined]));

function Connections({ filter, search, onChange }: Props) {
  const { t } = useTranslation();
  const orders = connectionOrdersOf(filter);
  const query = useFlows(filter, useServerSort(orders));
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  const chosen = search.get("row");
  const filtered = isFiltered(search);
  return (
    <>
      <FlowTimeSeries filter={filter} onChange={onChange} />
      <Loaded query={query}>
        {({ pages }) => {
          if (pages.some((page) => !page.available)) return <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>;
          if (rows.length > 0) return <FlowTable query={query} orders={orders} rows={rows} label={t(`flows.tabs.${tabOf(search)}`)} onOpen={(row) => onChange({ row })} />;
          if (!filtered && filter.disagree) return <EmptyState>{t("flows.agree")}</EmptyState>;
          if (!pages[0]?.lastFlow) return <EmptyState>{t("connections.noFlow")}</EmptyState>;
          return (
            <EmptyState
              action={
                filtered && (
                  <Button variant="default" onClick={() => onChange(cleared)}>
                    {t("action.clear")}
                  </Button>
                )
              }
            >
              {t(filtered ? "flows.noMatch" : "flows.empty")}
            </EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
      {query.data?.pages[0]?.lastFlow && (
        <p className={pageClasses.aside}>
          {t("connections.lastFlow")}: <RelativeTime at={query.data.pages[0].lastFlow} />
        </p>
      )}
      <FlowDrawer
        row={chosen === null ? undefined : rows.find((row) => connectionKey(row) === chosen)}
        pathWith={(change) => `/flows?${applyChange(applyChange(search, { ...cleared, ...tabChange.connections }), change).toString()}`}
        onClose={() => onChange({ row: undefined })}
      />
    </>
  );
}

function Refresh() {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const busy = useIsFetching({ queryKey: keys.flows.all }) > 0;
  return (
    <ActionIcon variant="default" size="lg" onClick={() => void cache.invalidateQueries({ queryKey: keys.flows.all })} loading={busy} aria-label={t("flows.refresh")} title={t("flows.refresh")} data-testid="flow-refresh">
      <IconRefresh size={16} aria-hidden />
    </ActionIcon>
  );
}

/** FlowsPage shows who connected to what, the decisions, and the statements that decided. */
export function FlowsPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const filter = flowFilterOf(search);
  const tab = tabOf(search);
  // The open row is not part of a saved view.
  const address = applyChange(search, { row: undefined }).toString();
  const narrow = (next: FilterChange) => change({ row: undefined, ...next });
  return (
    <Page
      wide
      title={t("flows.title")}
      sub={t("flows.intro")}
      actions={
        <div style={{ display: "flex", gap: 8 }}>
          <Refresh />
          <SavedViews page="flows" query={address} />
        </div>
      }
    >
      <FlowFilters filter={filter} search={search} onChange={narrow} />
      {tab !== "losses" && <LossBanner filter={filter} to={`/flows?${applyChange(search, { ...tabChange.losses }).toString()}`} />}
      <Tabs value={tab} onChange={(next) => change(tabChange[tabs.find((each) => each === next) ?? "connections"])} keepMounted={false}>
        <Tabs.List mb="md">
          {tabs.map((each) => (
            <Tabs.Tab key={each} value={each} data-testid={`flow-tab-${each}`}>
              {t(`flows.tabs.${each}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={tab}>
          {(tab === "connections" || tab === "disagreements") && <Connections key={tab} filter={filter} search={search} onChange={narrow} />}
          {tab === "raw" && <RawFlows filter={filter} search={search} />}
          {tab === "losses" && <FlowLosses filter={filter} />}
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
