import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useUnused } from "../api/flows";
import { useMe } from "../api/queries";
import { PersonSelect } from "../components/EntitySelect";
import { UnusedDaysSelect, Unobserved, useUnusedDays } from "../components/evidence/UnusedSection";
import { UnusedTable } from "../components/evidence/UnusedTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { canManageGovernance, canSeeGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import { useFilters } from "../lib/use-filters";

/** UnusedPage lists statements without traffic, so that unused access can be revoked. */
export function UnusedPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const quietDays = useUnusedDays();
  const me = useMe().data;
  const sees = canSeeGovernance(me);
  const text = (key: string) => search.get(key)?.trim() || undefined;
  const [q, owner, of] = [text("q"), text("owner"), text("class")];
  const query = useUnused({ quietDays, ...(q ? { q } : {}), ...(owner ? { owner } : {}), ...(of ? { class: of } : {}) });
  const filtered = q !== undefined || owner !== undefined || of !== undefined;
  return (
    <Page
      wide
      title={t("unused.page")}
      sub={t("unused.intro")}
      actions={
        <Group gap="sm">
          <SavedViews page="unused" query={search.toString()} />
          {canManageGovernance(me) && (
            <Button component={Link} to={`/reviews/new${of ? `?${new URLSearchParams({ class: of }).toString()}` : ""}`} variant="default" data-testid="unused-review">
              {t("unused.review")}
            </Button>
          )}
        </Group>
      }
    >
      <Group gap={10} mb="md" role="search" aria-label={t("flows.filters")}>
        <SearchField size="xs" flex="1 1 240px" maw={320} label={t("unused.search")} value={q ?? ""} onChange={(next) => change({ q: next })} testId="unused-search" />
        <SearchField size="xs" label={t("rollout.class")} value={of ?? ""} onChange={(next) => change({ class: next })} testId="unused-class" />
        {sees && <PersonSelect size="xs" clearable placeholder={t("rollout.anyOwner")} value={owner ?? ""} onChange={(next) => change({ owner: next })} nothingFound={t("person.noMatch")} testId="unused-owner" />}
        <UnusedDaysSelect />
      </Group>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          const unobserved = [...new Set(pages.flatMap((page) => page.unobserved ?? []))];
          return (
            <>
              <Unobserved names={unobserved} />
              {rows.length > 0 && <UnusedTable query={query} rows={rows} label={t("unused.page")} />}
              {rows.length === 0 && (
                <EmptyState
                  action={
                    filtered && (
                      <Button variant="default" onClick={() => change({ q: undefined, owner: undefined, class: undefined })}>
                        {t("action.clear")}
                      </Button>
                    )
                  }
                >
                  {t(filtered ? "unused.noMatch" : "unused.empty")}
                </EmptyState>
              )}
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
