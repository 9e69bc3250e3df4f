import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useDeleteWorkload } from "../../api/governance";
import type { Workload } from "../../api/types";
import { workloadsCSV } from "../../lib/tables/catalog";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import { ConfirmDialog } from "../ConfirmDialog";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import type { Pages } from "../TableDownload";
import { ShortName } from "../Names";
import tables from "../Tables.module.css";
import { useToast } from "../toast-context";

/** peopleSource is the source of workloads that people registered. Other sources are managed by platforms. */
export const peopleSource = "portal";

function Remove({ workload, onClose }: { workload: Workload; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const remove = useDeleteWorkload();
  return (
    <ConfirmDialog
      title={t("machines.removeTitle", { id: workload.id })}
      text={t("machines.removeText", { addresses: words.list(workload.addresses), subject: workload.subject })}
      confirm={t("machines.remove")}
      danger
      pending={remove.isPending}
      error={remove.error}
      testId="remove-workload"
      onConfirm={() =>
        remove.mutate(workload.id, {
          onSuccess: () => {
            toast(t("machines.removed", { id: workload.id }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

/** WorkloadTable lists external workloads, and lets people who may change them remove those that people registered. */
export function WorkloadTable({ rows, mayChange, query }: { rows: Workload[]; mayChange: boolean; query: Pages<Workload> }) {
  const { t } = useTranslation();
  const words = useWords();
  const [removing, setRemoving] = useState<Workload>();
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
    { key: "subject", header: t("machines.actsAs"), cell: (row) => <ShortName name={row.subject} />, sortBy: (row) => row.subject },
    { key: "addresses", header: t("workloads.addresses"), cell: (row) => <span className={tables.number}>{words.list(row.addresses)}</span>, sortBy: (row) => row.addresses[0] },
    {
      key: "source",
      header: t("workloads.source"),
      sortBy: (row) => row.source,
      cell: (row) => (row.source === undefined ? <span title={t("machines.elsewhereHelp")}>{t("machines.elsewhere")}</span> : row.source === peopleSource ? t("machines.people") : row.source),
    },
    {
      key: "state",
      header: t("workloads.state"),
      cell: (row) => (
        <span className={tables.stack}>
          {row.accepted !== undefined && <span>{row.accepted ? <ToneBadge tone="ok" word={t("workloads.accepted")} /> : <ToneBadge tone="busy" word={t("workloads.waiting")} />}</span>}
          {row.message && <span className={tables.why}>{words.message(row.message)}</span>}
        </span>
      ),
    },
    {
      key: "remove",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) =>
        mayChange &&
        row.source === peopleSource && (
          <Button size="compact-sm" variant="default" onClick={() => setRemoving(row)} aria-label={t("machines.removeOf", { id: row.id })} data-testid={`remove-${row.id}`}>
            {t("machines.remove")}
          </Button>
        ),
    },
  ];
  return (
    <>
      <DataTable query={query} csv={workloadsCSV} label={t("machines.title")} columns={columns} rows={rows} rowKey={(row) => `${row.source ?? ""}/${row.id}`} rowTestId={(row) => `workload-${row.id}`} />
      {removing && <Remove workload={removing} onClose={() => setRemoving(undefined)} />}
    </>
  );
}
