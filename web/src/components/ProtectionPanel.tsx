import { useTranslation } from "react-i18next";
import type { ClusterState, Protection } from "../api/types";
import { ClusterStateBadge, ModeBadge } from "./Badge";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Notice } from "./Feedback";
import tables from "./Tables.module.css";
import { Ago } from "./Time";

/** The truth per member: what it should have, what was read back. */
export function ProtectionPanel({ protection }: { protection: Protection | undefined }) {
  const { t } = useTranslation();
  if (!protection) return <Notice>{t("resource.notProtected")}</Notice>;
  const columns: Column<ClusterState>[] = [
    { key: "cluster", header: t("resource.cluster"), cell: (row) => <strong>{row.cluster}</strong> },
    {
      key: "state",
      header: t("resource.state"),
      cell: (row) => (
        <span className={tables.stack}>
          <span>
            <ClusterStateBadge state={row.state} message={row.message} testId={`cluster-state-${row.cluster}`} />
          </span>
          {row.message && row.state !== "Realized" && <span className={tables.muted}>{row.message}</span>}
        </span>
      ),
    },
    { key: "mode", header: t("resource.mode"), cell: (row) => <ModeBadge mode={row.mode ?? protection.effectiveMode} /> },
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
    { key: "since", header: t("resource.since"), nowrap: true, cell: (row) => (row.since ? <Ago at={row.since} /> : null) },
  ];
  return (
    <>
      {protection.message && <Notice>{protection.message}</Notice>}
      {protection.clusters.length === 0 ? (
        <EmptyState>{t("resource.noClusters")}</EmptyState>
      ) : (
        <DataTable label={t("resource.protection")} columns={columns} rows={protection.clusters} rowKey={(row) => row.cluster} testId="protection-table" />
      )}
    </>
  );
}
