import { MultiSelect } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useAccessPolicies } from "../api/fleet";
import { useMe } from "../api/queries";
import type { PolicySummary } from "../api/types";
import { ToneBadge } from "../components/Badge";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { Loaded, Notice } from "../components/Feedback";
import { CountFilter } from "../components/govern/CountFilter";
import { NoRows } from "../components/govern/NoRows";
import classes from "../components/govern/Govern.module.css";
import { IssueBadge } from "../components/govern/badges";
import { PolicyOriginText } from "../components/govern/PolicyOriginText";
import { LoadMore } from "../components/LoadMore";
import { RefName } from "../components/Names";
import { canSeeGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import tables from "../components/Tables.module.css";
import { policiesCSV } from "../lib/tables/access";
import { issueKinds, originKinds } from "../lib/governance-filters";
import { among, useFilters } from "../lib/use-filters";
import { policyOrders, useServerSort } from "../lib/use-server-sort";
import { useWords } from "../lib/use-words";

function Force({ policy }: { policy: PolicySummary }) {
  const { t } = useTranslation();
  const words = useWords();
  const help = policy.message ? words.message(policy.message) : undefined;
  if (!policy.accepted) return <ToneBadge tone="bad" word={t("acp.notAccepted")} help={help} value="rejected" />;
  if (policy.realized === undefined) return <ToneBadge tone="idle" word={t("acp.nowhere")} value="nowhere" />;
  return policy.realized ? <ToneBadge tone="ok" word={t("acp.realized")} value="realized" /> : <ToneBadge tone="busy" word={t("acp.pending")} help={help} value="pending" />;
}

/** Issues shows the number of issues of a policy's statements by kind. */
export function Issues({ issues }: { issues: PolicySummary["issues"] }) {
  const { t } = useTranslation();
  const odd = issueKinds.filter((kind) => (issues[kind] ?? 0) > 0);
  if (odd.length === 0) return <span className={tables.muted}>{t("acp.fine")}</span>;
  return (
    <span className={classes.chips}>
      {odd.map((kind) => (
        <IssueBadge key={kind} kind={kind} count={issues[kind] ?? 0} />
      ))}
    </span>
  );
}

function List() {
  const { t } = useTranslation();
  const words = useWords();
  const [search, change] = useFilters();
  const origin = among(search.getAll("origin"), originKinds);
  const issue = among(search.getAll("issue"), issueKinds);
  const q = search.get("q")?.trim() ?? "";
  const query = useAccessPolicies({ ...(origin.length > 0 ? { origin } : {}), ...(issue.length > 0 ? { issue } : {}), ...(q ? { q } : {}), ...useServerSort(policyOrders) });
  const columns: Column<PolicySummary>[] = [
    {
      key: "name",
      header: t("acp.name"),
      sortBy: (row) => row.name,
      cell: (row) => (
        <Link className={tables.title} to={`/access-policies/${encodeURIComponent(row.name)}`}>
          {row.name}
        </Link>
      ),
    },
    {
      key: "about",
      header: t("acp.about"),
      cell: (row) => {
        const more = (row.resourcesTotal ?? 0) - (row.resources?.length ?? 0);
        return (
          <span className={tables.stack}>
            {row.resources?.map((about) => (
              <RefName key={about.name} kind="resources" about={about} />
            ))}
            {more > 0 && <span className={tables.muted}>{t("acp.more", { count: more })}</span>}
          </span>
        );
      },
    },
    { key: "origin", header: t("acp.origin"), cell: (row) => <PolicyOriginText origin={row.origin} />, sortBy: (row) => row.origin.kind },
    { key: "statements", header: t("acp.statements"), end: true, cell: (row) => <span className={tables.number}>{words.number(row.statements)}</span>, sortBy: (row) => row.statements },
    { key: "force", header: t("acp.force"), nowrap: true, cell: (row) => <Force policy={row} /> },
    { key: "issues", header: t("acp.issues"), cell: (row) => <Issues issues={row.issues} /> },
  ];
  const filtered = origin.length > 0 || issue.length > 0 || q !== "";
  return (
    <>
      <div className={classes.filters} role="search" aria-label={t("govern.filters")}>
        <SearchField label={t("govern.search")} value={q} onChange={(next) => change({ q: next })} testId="policies-search" />
        <MultiSelect aria-label={t("acp.origin")} placeholder={origin.length > 0 ? undefined : t("acp.origin")} data={originKinds.map((each) => ({ value: each as string, label: t(`origin.${each}`) }))} value={origin} onChange={(next) => change({ origin: next })} clearable data-testid="policies-origin" />
      </div>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <>
              <CountFilter label={t("acp.issues")} values={issueKinds} counts={pages[0]?.issues ?? {}} word={(each) => t(`acp.issue.${each}`)} chosen={issue} onChange={(next) => change({ issue: next })} testId="issue" />
              {pages[0]?.unusedKnown === false && <Notice testId="unused-unknown">{t("acp.unusedUnknown")}</Notice>}
              {rows.length > 0 ? <DataTable query={query} csv={policiesCSV} orders={policyOrders} label={t("acp.title")} columns={columns} rows={rows} rowKey={(row) => row.name} rowTestId={(row) => `acp-${row.name}`} testId="access-policies" /> : <NoRows onClear={filtered ? () => change({ origin: undefined, issue: undefined, q: undefined }) : undefined}>{t("acp.empty")}</NoRows>}
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}

/** AccessPoliciesPage lists all AccessControlPolicies with their origin and the issues of their statements. */
export function AccessPoliciesPage() {
  const { t } = useTranslation();
  const [search] = useFilters();
  return (
    <Page wide title={t("acp.title")} sub={t("acp.intro")} actions={canSeeGovernance(useMe().data) && <SavedViews page="access-policies" query={search.toString()} />}>
      <GovernanceOnly>
        <List />
      </GovernanceOnly>
    </Page>
  );
}
