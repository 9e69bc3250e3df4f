import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import { useWorkloads } from "../api/queries";
import type { Workload } from "../api/types";
import { workloadsCSV } from "../lib/tables/catalog";
import { useWords } from "../lib/use-words";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Loaded } from "./Feedback";
import { LoadMore } from "./LoadMore";
import { Section } from "./Page";
import tables from "./Tables.module.css";

/** WorkloadsSection lists machines outside the fleet that act as the application. */
export function WorkloadsSection({ application }: { application: string }) {
  const { t } = useTranslation();
  const words = useWords();
  const query = useWorkloads(application);
  const columns: Column<Workload>[] = [
    {
      key: "id",
      header: t("workloads.id"),
      sortBy: (row) => row.id,
      cell: (row) => (
        <span className={tables.stack}>
          <code className={tables.code}>{row.id}</code>
          {row.description && <span className={tables.muted}>{row.description}</span>}
        </span>
      ),
    },
    { key: "addresses", header: t("workloads.addresses"), cell: (row) => <span className={tables.number}>{words.list(row.addresses)}</span>, sortBy: (row) => row.addresses[0] },
    { key: "source", header: t("workloads.source"), cell: (row) => row.source, sortBy: (row) => row.source },
    {
      key: "state",
      header: t("workloads.state"),
      cell: (row) => (
        <span className={tables.stack}>
          {row.accepted === undefined ? null : t(row.accepted ? "workloads.accepted" : "workloads.waiting")}
          {row.message && <span className={tables.muted}>{words.message(row.message)}</span>}
        </span>
      ),
    },
  ];
  // The section is hidden from people who may not see the workloads.
  if (query.error && asApiError(query.error).status === 403) return null;
  return (
    <Section anchor="workloads" title={t("workloads.title")} testId="workloads">
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          return rows.length === 0 ? <EmptyState>{t("workloads.empty")}</EmptyState> : <DataTable query={query} csv={workloadsCSV} sortParam="workloads-sort" label={t("workloads.title")} columns={columns} rows={rows} rowKey={(row) => row.id} />;
        }}
      </Loaded>
      <LoadMore query={query} param="workloads-pages" />
    </Section>
  );
}
