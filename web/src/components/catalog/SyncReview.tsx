import { Button, Checkbox, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useApplySync } from "../../api/governance";
import type { SyncChange, SyncPreview } from "../../api/types";
import { syncChangesCSV } from "../../lib/tables/catalog";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { ReasonDialog } from "../ReasonDialog";
import tables from "../Tables.module.css";
import { useToast } from "../toast-context";
import classes from "./Catalog.module.css";

const tones = { add: "ok", change: "busy", gone: "bad", conflict: "warn" } as const;
/** listed is the maximum number of changes that a preview lists, from api/openapi.yaml. */
const listed = 500;

function Fields({ change }: { change: SyncChange }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <ul className={classes.fields}>
      {change.consequences?.map((each) => (
        <li key={each.text} className={classes.consequence}>{words.message(each)}</li>
      ))}
      {change.fields?.map((field) => (
        <li key={field.field}>{t(field.before === "" ? "sync.set" : field.after === "" ? "sync.cleared" : "sync.from", { ...field })}</li>
      ))}
    </ul>
  );
}

/** A reason, as ReasonDialog keeps it. */
const isReason = (value: unknown): value is [reason: string] => Array.isArray(value) && typeof value[0] === "string";

interface Props {
  source: string;
  preview: SyncPreview;
  mayApply: boolean;
  onClose: () => void;
}

/** SyncReview lists what a sync would change, entity by entity, and asks for confirmation before it is applied. */
export function SyncReview({ source, preview, mayApply, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const [removeGone, setRemoveGone] = useState(false);
  const [asking, setAsking] = useState(false);
  // The preview is computed again after a login and may differ, so the dialog is opened only by the person, with the reason from before.
  const { draft, kept, close } = useKeptDialog(`sync ${source}`, isReason);
  const apply = useApplySync();
  const { token, added, changed, gone, unchanged, changes, problems } = preview;
  const total = added + changed + gone;
  const columns: Column<SyncChange>[] = [
    {
      key: "entity",
      header: t("sync.entity"),
      sortBy: (row) => row.title,
      cell: (row) => (
        <span className={tables.stack}>
          <span className={tables.title}>{row.title}</span>
          <span className={tables.muted}>{t(`entities.kinds.${row.kind}`)} · {row.id}</span>
        </span>
      ),
    },
    { key: "what", header: t("sync.what"), sortBy: (row) => row.verb, cell: (row) => <ToneBadge tone={tones[row.verb]} word={t(`sync.verb.${row.verb}`)} value={row.verb} /> },
    { key: "details", header: t("sync.details"), cell: (row) => <Fields change={row} /> },
  ];
  return (
    <section className={classes.panel} aria-label={t("sync.title", { source })} data-testid="sync-review">
      <h2>{t("sync.title", { source })}</h2>
      <p className={classes.sums} data-testid="sync-sums">
        <span>{words.number(added)} {t("sync.added")}</span>
        <span>{words.number(changed)} {t("sync.changed")}</span>
        <span>{words.number(gone)} {t("sync.gone")}</span>
        {unchanged !== undefined && <span className={tables.muted}>{words.number(unchanged)} {t("sync.unchanged")}</span>}
      </p>
      {problems && problems.length > 0 && (
        <>
          <strong>{t("sync.problems", { count: problems.length })}</strong>
          <ul className={classes.problems} data-testid="sync-problems">
            {problems.map((each) => (
              <li key={each.text}>{words.message(each)}</li>
            ))}
          </ul>
        </>
      )}
      {changes.length > 0 ? (
        <DataTable partial={total > changes.length && changes.length >= listed} csv={syncChangesCSV(source)} sortParam="sync-sort" label={t("sync.title", { source })} columns={columns} rows={changes} rowKey={(row) => `${row.kind}/${row.id}/${row.verb}`} rowTestId={(row) => `change-${row.id}`} />
      ) : (
        total === 0 && <p>{t("sync.nothing")}</p>
      )}
      {total > changes.length && changes.length >= listed && <p className={tables.muted}>{t("sync.more", { count: changes.length })}</p>}
      <div className={classes.decide}>
        {mayApply && gone > 0 && <Checkbox mb="md" label={t("sync.removeGone")} description={t("sync.removeGoneHint")} checked={removeGone} onChange={(event) => setRemoveGone(event.currentTarget.checked)} data-testid="remove-gone" />}
        <Group gap="sm">
          {mayApply && total > 0 && (
            <Button onClick={() => setAsking(true)} data-testid="apply-sync">
              {t("sync.apply")}
            </Button>
          )}
          <Button variant="default" onClick={onClose} data-testid="close-sync">
            {t(mayApply && total > 0 ? "sync.discard" : "action.close")}
          </Button>
        </Group>
      </div>
      {asking && (
        <ReasonDialog
          title={t("sync.applyTitle", { count: total })}
          text={t("sync.applyText", { source, added: words.number(added), changed: words.number(changed), gone: words.number(gone) })}
          confirm={t("sync.apply")}
          danger={gone > 0}
          pending={apply.isPending}
          error={apply.error}
          draft={draft?.[0]}
          kept={kept}
          testId="apply"
          onConfirm={(reason) =>
            apply.mutate({ source, token, removeGone, reason }, {
              onSuccess: () => {
                toast(t("sync.applied", { source }));
                close();
                onClose();
              },
            })
          }
          onClose={() => {
            close();
            setAsking(false);
          }}
        />
      )}
    </section>
  );
}
