import { Select } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useFindings, useFleet } from "../api/fleet";
import { useMe } from "../api/queries";
import type { Finding } from "../api/types";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { Loaded, Notice } from "../components/Feedback";
import { CountFilter } from "../components/govern/CountFilter";
import { NoRows } from "../components/govern/NoRows";
import classes from "../components/govern/Govern.module.css";
import { FindingBadge } from "../components/govern/badges";
import { MemberLink } from "../components/govern/MemberParts";
import { LoadMore } from "../components/LoadMore";
import { RefName } from "../components/Names";
import { canSeeGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import tables from "../components/Tables.module.css";
import { RelativeTime } from "../components/Time";
import { findingsCSV } from "../lib/tables/fleet";
import { findingKinds } from "../lib/governance-filters";
import { among, useFilters } from "../lib/use-filters";
import { findingOrders, useServerSort } from "../lib/use-server-sort";
import { useWords } from "../lib/use-words";
import { instant } from "../lib/table-sort";

/** Where links the objects of a finding. */
function Where({ finding }: { finding: Finding }) {
  return (
    <span className={tables.stack}>
      {finding.resource && <RefName kind="resources" about={finding.resource} />}
      {finding.policy && (
        <Link className={tables.title} to={`/access-policies/${encodeURIComponent(finding.policy)}`}>
          {finding.sid ? `${finding.policy} / ${finding.sid}` : finding.policy}
        </Link>
      )}
      {finding.member && <MemberLink name={finding.member} />}
      {finding.object && <code className={tables.code}>{finding.object}</code>}
    </span>
  );
}

function List() {
  const { t } = useTranslation();
  const words = useWords();
  const [search, change] = useFilters();
  const kind = among(search.getAll("kind"), findingKinds);
  const q = search.get("q")?.trim() ?? "";
  const member = search.get("member") ?? "";
  const query = useFindings({ ...(kind.length > 0 ? { kind } : {}), ...(q ? { q } : {}), ...(member ? { member } : {}), ...useServerSort(findingOrders) });
  const members = (useFleet().data?.items ?? []).map(({ name }) => name);
  const columns: Column<Finding>[] = [
    { key: "kind", header: t("finding.what"), nowrap: true, cell: (row) => <FindingBadge kind={row.kind} severity={row.severity} />, sortBy: (row) => t(`finding.kind.${row.kind}`) },
    { key: "where", header: t("finding.where"), cell: (row) => <Where finding={row} />, sortBy: (row) => row.resource?.title ?? row.policy ?? row.member ?? row.object },
    { key: "message", header: t("finding.message"), cell: (row) => <span className={classes.message}>{row.message ? words.message(row.message) : t("finding.noMessage")}</span> },
    { key: "since", header: t("finding.since"), nowrap: true, cell: (row) => (row.since ? <RelativeTime at={row.since} /> : <span className={tables.muted}>{t("finding.sinceUnknown")}</span>), sortBy: (row) => instant(row.since) },
  ];
  const filtered = kind.length > 0 || q !== "" || member !== "";
  return (
    <>
      <div className={classes.filters} role="search" aria-label={t("govern.filters")}>
        <SearchField label={t("govern.search")} value={q} onChange={(next) => change({ q: next })} testId="findings-search" />
        <Select clearable searchable aria-label={t("finding.member")} placeholder={t("finding.anyMember")} data={[...new Set([...members, ...(member ? [member] : [])])].sort()} value={member || null} onChange={(next) => change({ member: next ?? undefined })} data-testid="findings-member" />
      </div>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <>
              <CountFilter label={t("finding.kindLabel")} values={findingKinds} counts={pages[0]?.kinds ?? {}} word={(each) => t(`finding.kind.${each}`)} chosen={kind} onChange={(next) => change({ kind: next })} testId="kind" />
              {pages[0]?.flowsAvailable === false && <Notice testId="flows-unavailable">{t("finding.flowsUnknown")}</Notice>}
              {rows.length > 0 ? <DataTable query={query} csv={findingsCSV} orders={findingOrders} label={t("finding.title")} columns={columns} rows={rows} rowKey={(row) => row.id} testId="findings" /> : <NoRows onClear={filtered ? () => change({ kind: undefined, q: undefined, member: undefined }) : undefined}>{t("finding.none")}</NoRows>}
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}

/** FindingsPage lists all findings, the most severe first. */
export function FindingsPage() {
  const { t } = useTranslation();
  const [search] = useFilters();
  return (
    <Page wide title={t("finding.title")} sub={t("finding.intro")} actions={canSeeGovernance(useMe().data) && <SavedViews page="findings" query={search.toString()} />}>
      <GovernanceOnly>
        <List />
      </GovernanceOnly>
    </Page>
  );
}
