import { useTranslation } from "react-i18next";
import type { LedgerLine } from "../api/types";
import { ledgerLinesCSV } from "../lib/tables/ledger";
import { detailsOf } from "../lib/ledger-line";
import { useWords } from "../lib/use-words";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState } from "./Feedback";
import { LedgerAction } from "./ledger/LedgerAction";
import { PersonName } from "./Names";
import tables from "./Tables.module.css";
import { RelativeTime } from "./Time";
import { instant } from "../lib/table-sort";

/** Details lists the details of a line. The page Ledger also shows how those with a translation were recorded. */
function Details({ line }: { line: LedgerLine }) {
  const { t } = useTranslation();
  const words = useWords();
  const details = detailsOf(line)
    .filter(({ ofText }) => !ofText)
    .map(({ key, value, label, texts }) => t("history.detail", { name: label ? words.message(label) : key, value: texts?.map((each) => words.message(each)).join("\n") ?? value }));
  return <span className={`${tables.muted} ${tables.lines}`}>{details.join("\n")}</span>;
}

/** TicketHistory lists the ledger's lines about a ticket, oldest first. partial reports whether there are further ones. */
export function TicketHistory({ lines, partial }: { lines: LedgerLine[]; partial: boolean }) {
  const { t } = useTranslation();
  if (lines.length === 0) return <EmptyState>{t("history.empty")}</EmptyState>;
  const columns: Column<LedgerLine>[] = [
    { key: "seq", header: t("history.line"), cell: (line) => <span className={tables.number}>{line.seq}</span>, sortBy: (line) => line.seq },
    { key: "at", header: t("history.at"), nowrap: true, cell: (line) => <RelativeTime at={line.at} />, sortBy: (line) => instant(line.at) },
    { key: "actor", header: t("history.actor"), cell: (line) => (line.actor ? <PersonName person={line.actor} /> : <span className={tables.muted}>{t("history.portal")}</span>), sortBy: (line) => line.actor?.displayName },
    {
      key: "action",
      header: t("history.action"),
      sortBy: (line) => line.action,
      cell: (line) => (
        <span className={tables.stack}>
          <LedgerAction line={line} />
          <Details line={line} />
        </span>
      ),
    },
    { key: "hash", header: t("history.hash"), cell: (line) => <code className={tables.code} title={line.hash}>{line.hash.slice(0, 12)}</code> },
  ];
  return <DataTable csv={ledgerLinesCSV} partial={partial} sortParam="history-sort" label={t("ticket.history")} columns={columns} rows={lines} rowKey={(line) => String(line.seq)} testId="ticket-history" />;
}
