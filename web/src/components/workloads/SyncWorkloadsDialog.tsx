import { Checkbox, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSyncWorkloads } from "../../api/governance";
import type { WorkloadSync } from "../../api/types";
import { useWords } from "../../lib/use-words";
import { readWorkloads } from "../../lib/workload-file";
import { Notice } from "../Feedback";
import { FileTextField } from "../FileTextField";
import { FormDialog } from "../FormDialog";
import tables from "../Tables.module.css";
import { useToast } from "../toast-context";

/** sourceName matches the source names that the server accepts. */
const sourceName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** listed is the maximum number of listed ids. The counts include all of them. */
const listed = 50;

function Ids({ title, rows, testId }: { title: string; rows: { id: string; text?: string | undefined }[]; testId: string }) {
  const { t } = useTranslation();
  if (rows.length === 0) return null;
  return (
    <div data-testid={testId}>
      <Text size="sm" fw={540}>{title}</Text>
      <ul>
        {rows.slice(0, listed).map(({ id, text }) => (
          <li key={id}>
            <code className={tables.code}>{id}</code> {text && <span className={tables.muted}>{text}</span>}
          </li>
        ))}
      </ul>
      {rows.length > listed && <p className={tables.muted}>{t("sync.more", { count: listed })}</p>}
    </div>
  );
}

function Changes({ preview, sure, onSure }: { preview: WorkloadSync; sure: boolean; onSure: (sure: boolean) => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const { added, changed, removed, unchanged, refused, sample, unconfirmed } = preview;
  return (
    <>
      <p role="status" data-testid="sync-sum">
        {t("machines.syncSum", { added: words.number(added), changed: words.number(changed), removed: words.number(removed), unchanged: words.number(unchanged) })}
      </p>
      <Ids title={t("machines.goes")} rows={(sample ?? []).map(({ id, subject }) => ({ id, text: subject }))} testId="sync-goes" />
      <Ids title={t("machines.stays")} rows={(refused ?? []).map(({ id, message }) => ({ id, text: words.message(message) }))} testId="sync-refused" />
      {unconfirmed && (
        <>
          <Notice>{t("machines.much", { count: removed })}</Notice>
          <Checkbox label={t("machines.sure")} checked={sure} onChange={(event) => onSure(event.currentTarget.checked)} data-testid="sync-sure" />
        </>
      )}
    </>
  );
}

/** SyncWorkloadsDialog replaces a platform's source by the content of a file, after a preview of the changes. */
export function SyncWorkloadsDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const [source, setSource] = useState("");
  const [text, setText] = useState("");
  const [sure, setSure] = useState(false);
  const preview = useSyncWorkloads();
  const apply = useSyncWorkloads();
  const { items, problem } = readWorkloads(text);
  const named = sourceName.test(source);
  const shown = preview.data;
  const nothing = shown !== undefined && shown.added + shown.changed + shown.removed === 0;
  // The preview belongs to the previous input.
  const forget = () => {
    preview.reset();
    apply.reset();
    setSure(false);
  };
  // The first submission shows what would change, the second one changes it.
  const submit = () => {
    if (!items || !named) return false;
    if (!shown) {
      preview.mutate({ source, items, confirm: false });
      return true;
    }
    apply.mutate(
      { source, items, token: shown.token, confirm: sure },
      {
        onSuccess: () => {
          toast(t("machines.synced", { source }));
          onClose();
        },
      },
    );
    return true;
  };

  return (
    <FormDialog
      title={t("machines.dialogSync")}
      size="lg"
      testId="sync-dialog"
      submit={
        shown
          ? { label: t(nothing ? "sync.nothing" : "machines.syncApply"), disabled: nothing || (shown.unconfirmed === true && !sure), testId: "sync-apply", onSubmit: submit }
          : { label: t("machines.syncPreview"), disabled: !items || !named, testId: "sync-preview", onSubmit: submit }
      }
      pending={preview.isPending || apply.isPending}
      error={apply.error ?? preview.error}
      values={{ source, text }}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("machines.syncHint")}</Text>
          <TextInput
            label={t("machines.syncSource")}
            description={t("machines.syncSourceHint")}
            required
            value={source}
            onChange={(event) => {
              setSource(event.currentTarget.value.trim());
              forget();
            }}
            error={source !== "" && !named ? t("machines.error.source") : fieldError("source")}
            data-testid="sync-source"
          />
          <FileTextField
            label={t("machines.content")}
            description={t("machines.syncFileHint")}
            accept=".csv,.json,text/csv,application/json"
            choose={t("machines.file")}
            value={text}
            onChange={(value) => {
              setText(value);
              forget();
            }}
            error={text.trim() !== "" && problem ? t(`machines.error.${problem.key}`, { ...problem }) : fieldError("items")}
            testId="sync-content"
          />
          {shown && <Changes preview={shown} sure={sure} onSure={setSure} />}
        </>
      )}
    </FormDialog>
  );
}
