import { useTranslation } from "react-i18next";
import type { ClusterState, Protection } from "../api/types";
import { protectionCSV } from "../lib/tables/fleet";
import { useWords } from "../lib/use-words";
import { ClusterStateBadge, ModeBadge } from "./Badge";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Notice } from "./Feedback";
import { MemberSummary, useWorstMembers } from "./MemberSummary";
import { NodeSummary } from "./NodeSummary";
import tables from "./Tables.module.css";
import { RelativeTime } from "./Time";
import { instant } from "../lib/table-sort";

/** mostRows is the number of rows that are shown at first. */
const mostRows = 20;

/** ProtectionPanel shows for each member what it should have and what was read back. */
export function ProtectionPanel({ protection }: { protection: Protection | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const { shown, more } = useWorstMembers(protection?.clusters ?? [], mostRows, (cluster) => cluster.state);
  if (!protection) return <Notice>{t("resource.notProtected")}</Notice>;
  // The rows show this for each member, so it is not repeated above them.
  const message = protection.clusters.some((cluster) => cluster.message && cluster.state !== "Realized") ? undefined : protection.message;
  const columns: Column<ClusterState>[] = [
    { key: "cluster", header: t("resource.cluster"), cell: (row) => <strong>{row.cluster}</strong>, sortBy: (row) => row.cluster },
    {
      key: "state",
      header: t("resource.state"),
      sortBy: (row) => row.state,
      cell: (row) => (
        <span className={tables.stack}>
          <span>
            <ClusterStateBadge state={row.state} message={row.message} testId={`cluster-state-${row.cluster}`} />
          </span>
          {row.message && row.state !== "Realized" && <span className={tables.muted}>{words.message(row.message)}</span>}
        </span>
      ),
    },
    { key: "mode", header: t("resource.mode"), cell: (row) => <ModeBadge mode={row.mode ?? protection.effectiveMode} />, sortBy: (row) => row.mode ?? protection.effectiveMode },
    {
      key: "revision",
      header: t("resource.revision"),
      cell: (row) => (
        <code className={tables.code} title={row.observedRevision}>
          {row.observedRevision?.slice(0, 8) ?? "–"}
          {row.desiredRevision && row.desiredRevision !== row.observedRevision && ` → ${row.desiredRevision.slice(0, 8)}`}
        </code>
      ),
    },
    { key: "since", header: t("resource.since"), nowrap: true, cell: (row) => (row.since ? <RelativeTime at={row.since} /> : null), sortBy: (row) => instant(row.since) },
  ];
  return (
    <>
      {message && (
        <div className={tables.above}>
          <Notice>{words.message(message)}</Notice>
        </div>
      )}
      {protection.clusters.length === 0 ? (
        <EmptyState>{t("resource.noClusters")}</EmptyState>
      ) : (
        <>
          <MemberSummary members={protection.clusters} counts={protection.members} above={mostRows} />
          <NodeSummary nodes={protection.nodes} />
          <DataTable csv={protectionCSV} partial={shown.length < protection.clusters.length} sortParam="members-sort" label={t("resource.protection")} columns={columns} rows={shown} rowKey={(row) => row.cluster} testId="protection-table" />
          {more}
        </>
      )}
    </>
  );
}
