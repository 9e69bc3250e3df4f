import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useModeHistory } from "../api/queries";
import type { ModeChange, Resource } from "../api/types";
import { instant } from "../lib/table-sort";
import { useWords } from "../lib/use-words";
import { ModeBadge } from "./Badge";
import { CsvLink } from "./CsvLink";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Loaded, Notice } from "./Feedback";
import { PersonName } from "./Names";
import { Section } from "./Page";
import tables from "./Tables.module.css";
import { DayAndTime } from "./Time";

/** ChangeDescription shows the kind of a change of the mode, the modes before and after it, and since when every member has it. */
function ChangeDescription({ row }: { row: ModeChange }) {
  const { t } = useTranslation();
  const words = useWords();
  const others = row.clusterModes ?? [];
  const known = row.kind === "ticket" || row.from !== undefined || row.to !== undefined;
  return (
    <span className={tables.stack}>
      <span>
        {t(`modes.kind.${row.kind}`)}
        {known && (
          <>
            {" "}
            {row.from ? <ModeBadge mode={row.from} /> : t("modes.notOnboarded")} → {row.to ? <ModeBadge mode={row.to} /> : t("modes.notOnboarded")}
          </>
        )}
        {row.until && <> {t("modes.until")} <DayAndTime at={row.until} /></>}
      </span>
      {others.length > 0 && <span className={tables.muted}>{t("past.clusterModes", { list: words.list(others.map((each) => `${each.cluster}: ${t(`mode.${each.mode}`)}`)) })}</span>}
      {row.kind === "ticket" && <span className={tables.muted}>{row.effectiveAt ? <>{t("modes.effective")} <DayAndTime at={row.effectiveAt} /></> : t("modes.notEffective")}</span>}
      {row.kind === "outside" && !known && <span className={tables.muted}>{t("modes.notRecorded")}</span>}
      {row.object && <code className={tables.code}>{row.object}</code>}
    </span>
  );
}

/** ChangeActor names the person or the program that made a change. */
function ChangeActor({ row }: { row: ModeChange }) {
  const { t } = useTranslation();
  if (row.by) return <PersonName person={row.by} />;
  if (row.byGuard) return t("modes.guard");
  return row.outsideBy && <span className={tables.muted}>{row.outsideBy === "unknown" ? t("modes.unknown") : row.outsideBy}</span>;
}

/** ModeHistorySection shows the changes of the mode of a resource and its temporary audits. */
export function ModeHistorySection({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const query = useModeHistory(resource.id);
  const columns: Column<ModeChange>[] = [
    { key: "at", header: t("modes.at"), nowrap: true, sortBy: (row) => instant(row.at), cell: (row) => <DayAndTime at={row.at} /> },
    { key: "what", header: t("modes.what"), sortBy: (row) => row.kind, cell: (row) => <ChangeDescription row={row} /> },
    { key: "who", header: t("modes.who"), cell: (row) => <ChangeActor row={row} /> },
    { key: "reason", header: t("modes.reason"), sortBy: (row) => row.reason, cell: (row) => row.reason },
    { key: "ticket", header: t("access.ticket"), nowrap: true, sortBy: (row) => row.ticket, cell: (row) => row.ticket && <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link> },
  ];
  return (
    <Section anchor="modes" title={t("modes.title")} testId="modes">
      <Loaded query={query}>
        {(list) => (
          <>
            {list.items.length === 0 ? <EmptyState testId="modes-empty">{t("modes.empty")}</EmptyState> : <DataTable sortParam="modes-sort" label={t("modes.title")} columns={columns} rows={list.items} rowKey={(row) => `${row.at} ${row.kind} ${row.ticket ?? ""}`} rowTestId={(row) => `mode-${row.kind}`} testId="modes-table" />}
            <Notice testId="modes-begin">
              {list.cut ? t("modes.cut") : t("periods.begin")}
              {list.recordsBegin && !list.cut && <> <DayAndTime at={list.recordsBegin} /></>}
            </Notice>
            {list.items.length > 0 && <CsvLink href={`/api/v1/resources/${encodeURIComponent(resource.id)}/mode-history?format=csv`} testId="modes-csv" />}
          </>
        )}
      </Loaded>
    </Section>
  );
}
