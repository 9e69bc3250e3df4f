import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useCatalogSources, usePreviewSync } from "../api/governance";
import { useMe } from "../api/queries";
import type { CatalogSource, SyncPreview } from "../api/types";
import { CatalogNav } from "../components/catalog/CatalogNav";
import { SyncReview } from "../components/catalog/SyncReview";
import { UploadSourceDialog } from "../components/catalog/UploadSourceDialog";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { ErrorState, Loaded, Notice } from "../components/Feedback";
import { canManageGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import tables from "../components/Tables.module.css";
import { RelativeTime } from "../components/Time";
import { sourcesCSV } from "../lib/tables/catalog";
import { useWords } from "../lib/use-words";
import { instant } from "../lib/table-sort";

interface Reviewed {
  source: string;
  preview: SyncPreview;
}

const entitiesOf = (source: string, gone = false) => `/catalog/entities?${new URLSearchParams({ source, ...(gone ? { gone: "yes" } : {}) }).toString()}`;

/** isUnsynced reports whether a source is never read as a whole: its entities are changed one at a time. */
const isUnsynced = (source: CatalogSource) => source.kind === "portal" || source.kind === "scim";

function Sources({ items, onReview, mayChange }: { items: CatalogSource[]; onReview: (reviewed: Reviewed) => void; mayChange: boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  const check = usePreviewSync();
  const columns: Column<CatalogSource>[] = [
    {
      key: "source",
      header: t("sources.source"),
      sortBy: (row) => row.id,
      cell: (row) => (
        <span className={tables.stack}>
          <span className={tables.title}>{row.id}</span>
          <span className={tables.muted}>{t(`sources.kind.${row.kind}`)}{row.location && ` · ${row.location}`}</span>
        </span>
      ),
    },
    { key: "entities", header: t("sources.entities"), end: true, cell: (row) => <Link to={entitiesOf(row.id)}>{words.number(row.entities)}</Link>, sortBy: (row) => row.entities },
    { key: "gone", header: t("sources.gone"), end: true, cell: (row) => (row.gone ? <Link to={entitiesOf(row.id, true)}>{words.number(row.gone)}</Link> : words.number(0)) },
    {
      key: "sync",
      header: t("sources.lastSync"),
      sortBy: (row) => instant(row.lastSync),
      cell: (row) => (
        <span className={tables.stack}>
          {row.lastSync ? <RelativeTime at={row.lastSync} /> : isUnsynced(row) ? null : t("sources.never")}
          {row.lastError && <Notice>{words.message(row.lastError)}</Notice>}
          {row.waiting && (
            <Notice testId={`waiting-${row.id}`}>
              {row.waiting.token === "" || !mayChange ? t("sources.waitingAuditor", { count: row.waiting.gone }) : t("sources.waiting")}
            </Notice>
          )}
        </span>
      ),
    },
    {
      key: "do",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) => {
        const waiting = row.waiting;
        if (!mayChange || isUnsynced(row)) return null;
        if (waiting && waiting.token !== "") {
          return (
            <Button size="compact-sm" onClick={() => onReview({ source: row.id, preview: waiting })} data-testid={`review-${row.id}`}>
              {t("sources.review")}
            </Button>
          );
        }
        if (row.kind === "upload") return null;
        return (
          <Button
            size="compact-sm"
            variant="default"
            loading={check.isPending && check.variables.source === row.id}
            onClick={() => check.mutate({ source: row.id, body: {} }, { onSuccess: (preview) => onReview({ source: row.id, preview }) })}
            aria-label={t("sources.checkOf", { source: row.id })}
            data-testid={`check-${row.id}`}
          >
            {t("sources.check")}
          </Button>
        );
      },
    },
  ];
  return (
    <>
      <DataTable csv={sourcesCSV} sortParam="sources-sort" label={t("sources.tab")} columns={columns} rows={items} rowKey={(row) => row.id} rowTestId={(row) => `source-${row.id}`} />
      {check.error ? <ErrorState error={check.error} title={t("error.actionTitle")} /> : null}
    </>
  );
}

/** CatalogPage shows the sources of the catalog, and what a sync would change. */
export function CatalogPage() {
  const { t } = useTranslation();
  const mayChange = canManageGovernance(useMe().data);
  const [reviewed, setReviewed] = useState<Reviewed>();
  const [uploading, setUploading] = useState(false);
  return (
    <Page
      wide
      title={t("sources.title")}
      sub={t("sources.intro")}
      actions={
        mayChange && (
          <Button variant="default" onClick={() => setUploading(true)} data-testid="upload-entities">
            {t("sources.upload")}
          </Button>
        )
      }
    >
      <GovernanceOnly>
        <CatalogNav />
        <SourceList onReview={setReviewed} mayChange={mayChange} />
        {reviewed && <SyncReview key={`${reviewed.source} ${reviewed.preview.token}`} {...reviewed} mayApply={mayChange} onClose={() => setReviewed(undefined)} />}
        {uploading && (
          <UploadSourceDialog
            onClose={() => setUploading(false)}
            onPreview={(source, preview) => {
              setUploading(false);
              setReviewed({ source, preview });
            }}
          />
        )}
      </GovernanceOnly>
    </Page>
  );
}

function SourceList({ onReview, mayChange }: { onReview: (reviewed: Reviewed) => void; mayChange: boolean }) {
  const query = useCatalogSources();
  return <Loaded query={query}>{({ items }) => <Sources items={items} onReview={onReview} mayChange={mayChange} />}</Loaded>;
}
