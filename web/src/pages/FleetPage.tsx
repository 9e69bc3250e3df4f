import { useTranslation } from "react-i18next";
import { useFleet } from "../api/fleet";
import type { Member } from "../api/types";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { GuardBadge, HealthBadge } from "../components/govern/badges";
import { MemberRevisionLag, FindingCounts, MemberIdentities, MemberLink, MemberNodes, MemberVersions } from "../components/govern/MemberParts";
import { GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import tables from "../components/Tables.module.css";
import { RelativeTime } from "../components/Time";
import { membersCSV } from "../lib/csv-tables";
import { useWords } from "../lib/use-words";

function Members() {
  const { t } = useTranslation();
  const words = useWords();
  const columns: Column<Member>[] = [
    { key: "member", header: t("fleet.member"), cell: (row) => <MemberLink name={row.name} />, sortBy: (row) => row.name },
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
            <span className={tables.muted}>
              {t("fleet.since")} <RelativeTime at={row.since} />
            </span>
          )}
        </span>
      ),
    },
    { key: "versions", header: t("fleet.versions"), cell: (row) => <MemberVersions member={row} /> },
    { key: "identities", header: t("fleet.identities"), cell: (row) => <MemberIdentities member={row} />, sortBy: (row) => row.identities?.used },
    { key: "objects", header: t("fleet.objects"), end: true, cell: (row) => row.objects && <span className={tables.number}>{words.number(row.objects.managed)}</span>, sortBy: (row) => row.objects?.managed },
    { key: "behind", header: t("fleet.behind"), nowrap: true, cell: (row) => <MemberRevisionLag member={row} />, sortBy: (row) => row.behind },
    { key: "nodes", header: t("fleet.nodes"), cell: (row) => <MemberNodes member={row} />, sortBy: (row) => row.nodes && row.nodes.total - row.nodes.reporting },
    { key: "guard", header: t("fleet.guard"), nowrap: true, cell: (row) => <GuardBadge state={row.guard} />, sortBy: (row) => row.guard },
    { key: "findings", header: t("fleet.findings"), cell: (row) => <FindingCounts member={row} />, sortBy: (row) => 1_000_000 * row.stops + 1_000 * row.fails + row.warns },
  ];
  return (
    <Loaded query={useFleet()}>
      {({ items, reported }) => (
        <>
          {!reported && items.length > 0 && <Notice testId="unreported">{t("fleet.unreported")}</Notice>}
          {items.length > 0 ? <DataTable csv={membersCSV} label={t("fleet.title")} columns={columns} rows={items} rowKey={(row) => row.name} rowTestId={(row) => `member-${row.name}`} testId="fleet" /> : <EmptyState>{t("fleet.empty")}</EmptyState>}
        </>
      )}
    </Loaded>
  );
}

/** FleetPage lists the members with health, versions, headroom and revision lag. */
export function FleetPage() {
  const { t } = useTranslation();
  return (
    <Page wide title={t("fleet.title")} sub={t("fleet.intro")}>
      <GovernanceOnly>
        <Members />
      </GovernanceOnly>
    </Page>
  );
}
