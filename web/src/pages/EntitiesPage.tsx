import { Button, Checkbox, Select } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useCatalogSources, useEntities } from "../api/governance";
import type { EntityFilter } from "../api/governance";
import { useMe } from "../api/queries";
import { CatalogNav } from "../components/catalog/CatalogNav";
import { EntityDialog } from "../components/catalog/EntityDialog";
import { EntityTable } from "../components/catalog/EntityTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { canManageGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import filters from "../components/requests/RequestFilters.module.css";
import { SearchField } from "../components/SearchField";
import { entityKinds, isEntity } from "../lib/entity";
import { useFilters } from "../lib/use-filters";
import { useKeptDialog } from "../lib/use-kept-dialog";
import { catalogOrders, useServerSort } from "../lib/use-server-sort";

const keys = ["q", "kind", "source", "gone"] as const;
const cleared = Object.fromEntries(keys.map((key) => [key, undefined]));

function filterOf(search: URLSearchParams): EntityFilter {
  const kind = entityKinds.find((each) => each === search.get("kind"));
  const [q, source] = [search.get("q")?.trim(), search.get("source")];
  return { ...(q ? { q } : {}), ...(kind ? { kind } : {}), ...(source ? { source } : {}), ...(search.get("gone") === "yes" ? { gone: true } : {}) };
}

function Entities({ mayChange }: { mayChange: boolean }) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const filter = filterOf(search);
  const query = useEntities({ ...filter, ...useServerSort(catalogOrders) });
  const sources = useCatalogSources().data?.items.map(({ id }) => id) ?? [];
  const filtered = Object.keys(filter).length > 0;
  return (
    <>
      <div className={filters.filters} role="search">
        <SearchField className={filters.text ?? ""} label={t("entities.search")} value={filter.q ?? ""} onChange={(q) => change({ q })} testId="entity-search" />
        <Select clearable aria-label={t("entities.kind")} placeholder={t("entities.anyKind")} data={entityKinds.map((each) => ({ value: each, label: t(`entities.kinds.${each}`) }))} value={filter.kind ?? null} onChange={(kind) => change({ kind: kind ?? undefined })} w={160} data-testid="entity-filter-kind" />
        <Select clearable searchable aria-label={t("entities.source")} placeholder={t("entities.anySource")} data={[...new Set([...sources, ...(filter.source ? [filter.source] : [])])]} value={filter.source ?? null} onChange={(source) => change({ source: source ?? undefined })} w={180} data-testid="entity-filter-source" />
        <Checkbox mt={8} label={t("entities.onlyGone")} checked={filter.gone === true} onChange={(event) => change({ gone: event.currentTarget.checked ? "yes" : undefined })} data-testid="entity-filter-gone" />
      </div>
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          if (rows.length > 0) return <EntityTable query={query} rows={rows} mayChange={mayChange} />;
          if (!filtered) return <EmptyState>{t("entities.empty")}</EmptyState>;
          return (
            <EmptyState
              action={
                <Button variant="default" onClick={() => change(cleared)}>
                  {t("action.clear")}
                </Button>
              }
            >
              {t("entities.noMatch")}
            </EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}

/** EntitiesPage lists the entities of the catalog from all sources. */
export function EntitiesPage() {
  const { t } = useTranslation();
  const mayChange = canManageGovernance(useMe().data);
  const creating = useKeptDialog("new-entity", isEntity);
  return (
    <Page
      wide
      title={t("entities.tab")}
      sub={t("entities.intro")}
      crumbs={[{ to: "/catalog", label: t("sources.title") }]}
      actions={
        mayChange && (
          <Button onClick={creating.open} data-testid="new-entity">
            {t("entities.create")}
          </Button>
        )
      }
    >
      <GovernanceOnly>
        <CatalogNav />
        <Entities mayChange={mayChange} />
      </GovernanceOnly>
      {creating.opened && mayChange && <EntityDialog entity={undefined} draft={creating.draft} kept={creating.kept} onClose={creating.close} />}
    </Page>
  );
}
