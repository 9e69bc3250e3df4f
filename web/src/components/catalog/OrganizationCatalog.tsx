import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useEntities } from "../../api/governance";
import type { Organization } from "../../api/types";
import { isEntity } from "../../lib/entity";
import { useFilters } from "../../lib/use-filters";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import { catalogOrders, useServerSort } from "../../lib/use-server-sort";
import { EmptyState, Loaded } from "../Feedback";
import { LoadMore } from "../LoadMore";
import { Section } from "../Page";
import filters from "../requests/RequestFilters.module.css";
import { SearchField } from "../SearchField";
import { EntityDialog } from "./EntityDialog";
import type { EntityLimits } from "./EntityDialog";
import { EntityTable } from "./EntityTable";

/** limitsOf returns what the administrators of an organization may enter; nothing without a part of the catalog. */
function limitsOf({ catalogBounds: bounds, teams }: Organization): EntityLimits | undefined {
  if (!bounds) return undefined;
  const owners = teams.map(({ id, displayName }) => ({ value: `group:${id}`, label: displayName }));
  return { kinds: bounds.kinds, owners, sensitivities: bounds.sensitivities, environments: bounds.environments, patterns: bounds.patterns };
}

interface Props {
  organization: Organization;
  /** The person is in the security team, and may enter everything. */
  security: boolean;
  mayRequest: boolean;
}

/** OrganizationCatalog lists the applications and resources that teams of an organization own. Within the bounds its administrators enter, change and remove them. */
export function OrganizationCatalog({ organization, security, mayRequest }: Props) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const creating = useKeptDialog("new-entity", isEntity);
  const q = search.get("q")?.trim();
  const query = useEntities({ organization: organization.name, ...(q ? { q } : {}), ...useServerSort(catalogOrders) });
  const limits = limitsOf(organization);
  const mayChange = mayRequest && (security || (organization.mine && limits !== undefined));
  const used = security ? undefined : limits;
  const create = mayChange && (
    <Button size="compact-sm" variant="light" onClick={creating.open} data-testid="new-entity">
      {t("entities.create")}
    </Button>
  );
  return (
    <Section title={t("organizations.catalog")} aside={create}>
      <div className={filters.filters} role="search">
        <SearchField className={filters.text ?? ""} label={t("entities.search")} value={q ?? ""} onChange={(next) => change({ q: next })} testId="entity-search" />
      </div>
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          if (rows.length > 0) return <EntityTable query={query} rows={rows} mayChange={mayChange} limits={used} />;
          return <EmptyState testId="no-entities">{t(q ? "entities.noMatch" : "organizations.noEntities")}</EmptyState>;
        }}
      </Loaded>
      <LoadMore query={query} />
      {creating.opened && mayChange && <EntityDialog entity={undefined} draft={creating.draft} kept={creating.kept} limits={used} onClose={creating.close} />}
    </Section>
  );
}
