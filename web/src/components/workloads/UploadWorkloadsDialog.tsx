import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError, loginTooOld } from "../../api/client";
import { usePutWorkloads } from "../../api/governance";
import type { WorkloadResults } from "../../api/types";
import { workloadResultsCSV } from "../../lib/tables/catalog";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { readWorkloads } from "../../lib/workload-file";
import type { FileProblem } from "../../lib/workload-file";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { Notice } from "../Feedback";
import { FileTextField } from "../FileTextField";
import { FormDialog } from "../FormDialog";
import { InfoDialog } from "../InfoDialog";
import { TableDownload } from "../TableDownload";
import tables from "../Tables.module.css";
import { RequestWorkloadsButton } from "./RequestWorkloadsButton";

type Result = WorkloadResults["items"][number];

const tones = { created: "ok", changed: "busy", unchanged: "idle", refused: "bad" } as const;
/** listed is the maximum number of result rows. The counts above them include all results. */
const listed = 200;

/** mostKept is the maximum length of the text that is kept while the person logs in: the storage of a tab is limited. */
const mostKept = 1_000_000;

function Results({ results }: { results: Result[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const count = (outcome: Result["outcome"]) => words.number(results.filter((each) => each.outcome === outcome).length);
  // Refused workloads come first, because they need an action.
  const rows = [...results].sort((a, b) => Number(b.outcome === "refused") - Number(a.outcome === "refused")).slice(0, listed);
  const columns: Column<Result>[] = [
    { key: "id", header: t("machines.id"), cell: (row) => <code className={tables.code}>{row.id}</code>, sortBy: (row) => row.id },
    {
      key: "outcome",
      header: t("machines.result"),
      sortBy: (row) => t(`machines.outcome.${row.outcome}`),
      cell: (row) => (
        <span className={tables.stack}>
          <span><ToneBadge tone={tones[row.outcome]} word={t(`machines.outcome.${row.outcome}`)} value={row.outcome} /></span>
          {row.message && <span className={tables.muted}>{words.message(row.message)}</span>}
        </span>
      ),
    },
  ];
  return (
    <>
      <p role="status" data-testid="upload-sum">{t("machines.sum", { created: count("created"), changed: count("changed"), unchanged: count("unchanged"), refused: count("refused") })}</p>
      <DataTable label={t("machines.result")} columns={columns} rows={rows} rowKey={(row) => row.id} rowTestId={(row) => `result-${row.id}`} sortParam="upload-sort" partial={results.length > listed} />
      <TableDownload csv={workloadResultsCSV} rows={results} />
      {results.length > listed && <p className={tables.muted}>{t("sync.more", { count: listed })}</p>}
    </>
  );
}

interface Props {
  /** The text from before a login. */
  draft: string | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** UploadWorkloadsDialog registers the machines of a file. Each machine has its own result. */
export function UploadWorkloadsDialog({ draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const [text, setText] = useState(draft ?? "");
  const put = usePutWorkloads();
  const { items, problem } = readWorkloads(text);
  const words = useWords();
  // The results are in the order of the workloads.
  const beyond = (put.data ?? []).flatMap((result, at) => {
    const sent = put.variables?.[at];
    return result.needsApproval && result.application && sent ? [{ application: result.application, id: sent.id, addresses: sent.addresses, description: sent.description ?? "" }] : [];
  });
  const message = ({ key, ...values }: FileProblem) => t(`machines.error.${key}`, values);

  if (put.data) {
    return (
      <InfoDialog
        title={t("machines.dialogUpload")}
        size="lg"
        onClose={onClose}
        actions={
          <>
            {beyond.length > 0 && <RequestWorkloadsButton workloads={beyond} label={`${t("machines.ask")} (${words.number(beyond.length)})`} />}
            <Button variant="default" onClick={onClose}>
              {t("action.close")}
            </Button>
          </>
        }
      >
        <Results results={put.data} />
      </InfoDialog>
    );
  }

  const submit = () => {
    if (!items) return false;
    put.mutate(items, { onSuccess: kept.discard });
    return true;
  };
  return (
    <FormDialog
      title={t("machines.dialogUpload")}
      size="lg"
      submit={{ label: t("machines.send", { count: items?.length ?? 0 }), disabled: !items, testId: "upload-send", onSubmit: submit }}
      pending={put.isPending}
      error={put.error}
      values={text}
      {...(text.length <= mostKept ? { kept } : {})}
      onClose={onClose}
    >
      {() => (
        <>
          <FileTextField label={t("machines.content")} description={t("machines.uploadHint")} accept=".csv,.json,text/csv,application/json" choose={t("machines.file")} value={text} onChange={setText} error={text.trim() !== "" && problem ? message(problem) : undefined} testId="upload-content" />
          {items && <p role="status">{t("machines.read", { count: items.length })}</p>}
          {text.length > mostKept && <Notice testId="upload-not-kept">{t("machines.notKept")}</Notice>}
          {put.error && asApiError(put.error).code !== loginTooOld ? <Notice>{t("machines.partly")}</Notice> : null}
        </>
      )}
    </FormDialog>
  );
}
