import { Button, Group, SegmentedControl } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { usePackages } from "../api/packages";
import { useMe } from "../api/queries";
import type { PackageSummary } from "../api/types";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import { SearchField } from "../components/SearchField";
import tables from "../components/Tables.module.css";
import { RelativeTime } from "../components/Time";
import { packagesCSV } from "../lib/tables/packages";
import { useFilters } from "../lib/use-filters";

/** PackagesPage lists the access packages that can be requested, or those that are archived. */
export function PackagesPage() {
  const { t } = useTranslation();
  const me = useMe().data;
  const [search, change] = useFilters();
  const q = search.get("q") ?? "";
  const archived = search.get("archived") === "true";
  const query = usePackages({ ...(q ? { q } : {}), ...(archived ? { archived } : {}) });
  const mayPublish = me !== undefined && !me.roles.includes("auditor") && (me.groups.length > 0 || me.roles.includes("security"));
  const publish = mayPublish && (
    <Button component={Link} to="/requests/new?kind=package" variant="default" data-testid="new-package">
      {t("packages.publish")}
    </Button>
  );
  const columns: Column<PackageSummary>[] = [
    {
      key: "title",
      header: t("packages.name"),
      cell: (row) => (
        <span className={tables.stack}>
          <Link className={tables.title} to={`/packages/${row.name}`}>{row.title}</Link>
          <span className={tables.muted}>{row.description ?? row.name}</span>
        </span>
      ),
      sortBy: (row) => row.title,
    },
    { key: "team", header: t("packages.team"), cell: (row) => row.team.displayName, sortBy: (row) => row.team.displayName },
    { key: "resources", header: t("packages.resources"), end: true, cell: (row) => row.resources, sortBy: (row) => row.resources },
    { key: "version", header: t("packages.version"), end: true, cell: (row) => row.version, sortBy: (row) => row.version },
    { key: "published", header: t("packages.published"), nowrap: true, cell: (row) => <RelativeTime at={row.publishedAt} />, sortBy: (row) => row.publishedAt },
  ];
  return (
    <Page wide title={t("packages.title")} sub={t("packages.intro")} actions={publish}>
      <Group mb="md" gap="sm">
        <SegmentedControl
          size="sm"
          aria-label={t("packages.scope")}
          data={[
            { value: "current", label: t("packages.current") },
            { value: "archived", label: t("packages.archivedOnes") },
          ]}
          value={archived ? "archived" : "current"}
          onChange={(scope) => change({ archived: scope === "archived" ? "true" : undefined })}
        />
        <SearchField flex="1 1 200px" maw={360} label={t("packages.search")} value={q} onChange={(next) => change({ q: next })} testId="packages-search" />
      </Group>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap(({ items }) => items);
          if (rows.length === 0) return <EmptyState action={q ? undefined : publish}>{q ? t("packages.noMatch") : t(archived ? "packages.noneArchived" : "packages.none")}</EmptyState>;
          return <DataTable query={query} csv={packagesCSV} label={t("packages.title")} columns={columns} rows={rows} rowKey={({ name }) => name} rowTestId={({ name }) => `package-${name}`} testId="packages" />;
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
