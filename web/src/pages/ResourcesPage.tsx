import { Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useResources } from "../api/queries";
import type { Resource } from "../api/types";
import { ModeBadge, SensitivityBadge } from "../components/Badge";
import { CatalogFilters } from "../components/CatalogFilters";
import { ClusterChips } from "../components/ClusterChips";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Owners, RefName } from "../components/Names";
import { Page } from "../components/Page";
import { RefusedCount } from "../components/RefusedCount";
import { SavedViews } from "../components/SavedViews";
import tables from "../components/Tables.module.css";
import { resourcesCSV } from "../lib/tables/catalog";
import { useFilters } from "../lib/use-filters";
import { entityOrders, useServerSort } from "../lib/use-server-sort";

/** ResourcesPage lists the resources of the person, or all of them. */
export function ResourcesPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const q = search.get("q") ?? "";
  const owner = search.get("owner");
  const mine = search.get("scope") !== "all";
  const query = useResources({ mine, ...(q ? { q } : {}), ...(owner ? { owner } : {}), ...useServerSort(entityOrders) });

  const columns: Column<Resource>[] = [
    { key: "title", header: t("resources.name"), cell: (row) => <RefName kind="resources" about={row} full />, sortBy: (row) => row.title },
    {
      key: "mode",
      header: t("resources.mode"),
      sortBy: (row) => row.protection?.effectiveMode,
      cell: (row) => (
        <Group gap={6}>
          {row.protection ? <ModeBadge mode={row.protection.effectiveMode} /> : <span className={tables.muted}>{t("resources.notOnboarded")}</span>}
          {row.sensitivity === "high" && <SensitivityBadge sensitivity={row.sensitivity} />}
        </Group>
      ),
    },
    { key: "clusters", header: t("access.clusters"), cell: (row) => <ClusterChips clusters={row.protection?.clusters} /> },
    { key: "owners", header: t("applications.owners"), cell: (row) => <Owners owners={row.owners} /> },
    {
      key: "refused",
      header: t("applications.refused24h"),
      end: true,
      sortBy: (row) => row.denied24h,
      cell: (row) => <RefusedCount count={row.denied24h} to={`/resources/${encodeURIComponent(row.id)}#tried`} />,
    },
  ];

  return (
    <Page title={t("resources.mineTitle")} sub={t("resources.intro")} actions={<SavedViews page="resources" query={search.toString()} />}>
      <CatalogFilters search={search} onChange={change} placeholder={t("resources.search")} scopeLabel={t("resources.scope")} />
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          if (rows.length === 0) return <EmptyState>{q ? t("resources.noMatch") : mine ? t("resources.emptyMine") : t("resources.emptyAll")}</EmptyState>;
          return <DataTable query={query} csv={resourcesCSV} orders={entityOrders} label={t("resources.title")} columns={columns} rows={rows} rowKey={(row) => row.id} rowTestId={(row) => `resource-row-${row.id}`} />;
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
