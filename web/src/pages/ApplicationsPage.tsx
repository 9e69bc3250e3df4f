import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useApplications } from "../api/queries";
import type { Application } from "../api/types";
import { CatalogFilters } from "../components/CatalogFilters";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Owners, RefName } from "../components/Names";
import { Page } from "../components/Page";
import { RefusedCount } from "../components/RefusedCount";
import { SavedViews } from "../components/SavedViews";
import { applicationsCSV } from "../lib/tables/catalog";
import { useFilters } from "../lib/use-filters";
import { entityOrders, useServerSort } from "../lib/use-server-sort";

/** ApplicationsPage lists the applications of the person, or all of them. */
export function ApplicationsPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const q = search.get("q") ?? "";
  const owner = search.get("owner");
  const mine = search.get("scope") !== "all";
  const query = useApplications({ mine, ...(q ? { q } : {}), ...(owner ? { owner } : {}), ...useServerSort(entityOrders) });

  const columns: Column<Application>[] = [
    { key: "title", header: t("applications.name"), cell: (app) => <RefName kind="applications" about={app} full />, sortBy: (app) => app.title },
    { key: "environment", header: t("applications.environment"), cell: (app) => app.environment, sortBy: (app) => app.environment },
    { key: "owners", header: t("applications.owners"), cell: (app) => <Owners owners={app.owners} /> },
    {
      key: "refused",
      header: t("applications.refused24h"),
      end: true,
      sortBy: (app) => app.denied24h,
      cell: (app) => <RefusedCount count={app.denied24h} to={`/applications/${encodeURIComponent(app.id)}#refused`} />,
    },
  ];

  return (
    <Page
      title={t("applications.mineTitle")}
      sub={t("applications.intro")}
      actions={
        <Group gap="sm">
          <SavedViews page="applications" query={search.toString()} />
          <Button component={Link} to="/requests/new">
            {t("action.requestAccess")}
          </Button>
        </Group>
      }
    >
      <CatalogFilters search={search} onChange={change} placeholder={t("applications.search")} scopeLabel={t("applications.scope")} />
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          if (rows.length === 0) return <EmptyState>{q ? t("applications.noMatch") : mine ? t("applications.emptyMine") : t("applications.emptyAll")}</EmptyState>;
          return <DataTable query={query} csv={applicationsCSV} orders={entityOrders} label={t("applications.title")} columns={columns} rows={rows} rowKey={(app) => app.id} rowTestId={(app) => `application-row-${app.id}`} />;
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
