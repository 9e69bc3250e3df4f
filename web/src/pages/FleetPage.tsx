import { useTranslation } from "react-i18next";
import { useFleet } from "../api/fleet";
import { useMe } from "../api/queries";
import type { Member } from "../api/types";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { CountFilter } from "../components/govern/CountFilter";
import filters from "../components/govern/Govern.module.css";
import { GuardBadge, HealthBadge } from "../components/govern/badges";
import { MemberRevisionLag, FindingCounts, MemberIdentities, MemberLink, MemberNodes, MemberVersions, MemberWaves } from "../components/govern/MemberParts";
import { NoRows } from "../components/govern/NoRows";
import { canSeeGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import tables from "../components/Tables.module.css";
import { RelativeTime } from "../components/Time";
import { membersCSV } from "../lib/tables/fleet";
import { memberHealths } from "../lib/governance-filters";
import { among, useFilters } from "../lib/use-filters";
import { useWords } from "../lib/use-words";

/** searchable returns what the search of members looks at: all that the row shows of the member. */
const searchable = (row: Member) => [row.name, row.engine, row.clusterProfile, row.kubernetesVersion, row.ciliumVersion, row.istioVersion].join("\n").toLowerCase();

function Members() {
  const { t } = useTranslation();
  const words = useWords();
  const [search, change] = useFilters();
  const q = search.get("q")?.trim() ?? "";
  const states = among(search.getAll("state"), memberHealths);
  const columns: Column<Member>[] = [
    { key: "member", header: t("fleet.member"), nowrap: true, cell: (row) => <MemberLink name={row.name} />, sortBy: (row) => row.name },
    {
      key: "state",
      header: t("fleet.state"),
      sortBy: (row) => row.state,
      cell: (row) => (
        <span className={tables.stack}>
          <span>
            <HealthBadge state={row.state} />
          </span>
          {row.state !== "Ready" && row.message && <span className={tables.why}>{words.message(row.message)}</span>}
          {row.since && (
            <span className={`${tables.muted} ${tables.nowrap}`}>
              {t("fleet.since")} <RelativeTime at={row.since} />
            </span>
          )}
        </span>
      ),
    },
    { key: "findings", header: t("fleet.findings"), cell: (row) => <FindingCounts member={row} />, sortBy: (row) => 1_000_000 * row.stops + 1_000 * row.fails + row.warns },
    {
      key: "behind",
      header: t("fleet.behind"),
      cell: (row) => (
        <span className={tables.stack}>
          <span>
            <MemberRevisionLag member={row} />
          </span>
          {row.waves && <MemberWaves waves={row.waves} />}
        </span>
      ),
      sortBy: (row) => 1_000_000 * row.behind + (row.waves?.waiting ?? 0),
    },
    { key: "nodes", header: t("fleet.nodes"), cell: (row) => <MemberNodes member={row} />, sortBy: (row) => row.nodes && row.nodes.total - row.nodes.reporting },
    { key: "guard", header: t("fleet.guard"), nowrap: true, cell: (row) => <GuardBadge state={row.guard} />, sortBy: (row) => row.guard },
    { key: "identities", header: t("fleet.identities"), cell: (row) => <MemberIdentities member={row} />, sortBy: (row) => row.identities?.used },
    { key: "objects", header: t("fleet.objects"), end: true, cell: (row) => row.objects && <span className={tables.number}>{words.number(row.objects.managed)}</span>, sortBy: (row) => row.objects?.managed },
    { key: "versions", header: t("fleet.versions"), cell: (row) => <MemberVersions member={row} /> },
  ];
  return (
    <Loaded query={useFleet()}>
      {({ items, reported }) => {
        const found = items.filter((row) => searchable(row).includes(q.toLowerCase()));
        const counts: Record<string, number> = {};
        for (const row of found) counts[row.state] = (counts[row.state] ?? 0) + 1;
        const rows = states.length > 0 ? found.filter((row) => states.includes(row.state)) : found;
        const filtered = q !== "" || states.length > 0;
        if (items.length === 0) return <EmptyState>{t("fleet.empty")}</EmptyState>;
        return (
          <>
            {!reported && <Notice testId="unreported">{t("fleet.unreported")}</Notice>}
            <div className={filters.filters} role="search" aria-label={t("govern.filters")}>
              <SearchField label={t("fleet.searchLabel")} value={q} onChange={(next) => change({ q: next })} testId="fleet-search" />
            </div>
            <CountFilter label={t("fleet.stateFilter")} values={memberHealths} counts={counts} word={(each) => t(`fleet.isState.${each}`)} chosen={states} onChange={(next) => change({ state: next })} testId="state" />
            {rows.length > 0 ? <DataTable csv={membersCSV} label={t("fleet.title")} columns={columns} rows={rows} rowKey={(row) => row.name} rowTestId={(row) => `member-${row.name}`} testId="fleet" /> : <NoRows onClear={filtered ? () => change({ q: undefined, state: undefined }) : undefined}>{t("fleet.empty")}</NoRows>}
          </>
        );
      }}
    </Loaded>
  );
}

/** FleetPage lists the members with health, versions, headroom and revision lag. */
export function FleetPage() {
  const { t } = useTranslation();
  const [search] = useFilters();
  return (
    <Page wide title={t("fleet.title")} sub={t("fleet.intro")} actions={canSeeGovernance(useMe().data) && <SavedViews page="fleet" query={search.toString()} />}>
      <GovernanceOnly>
        <Members />
      </GovernanceOnly>
    </Page>
  );
}
