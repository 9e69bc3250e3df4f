import { useTranslation } from "react-i18next";
import type { LedgerLine } from "../api/types";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState } from "./Feedback";
import { PersonName } from "./Names";
import tables from "./Tables.module.css";
import { RelativeTime } from "./Time";

const details = (line: LedgerLine) =>
  Object.entries(line.details ?? {})
    .map(([key, value]) => `${key}: ${value}`)
    .join("\n");

/** TicketHistory lists the ledger's lines about a ticket, oldest first. They are evidence, so nothing is translated. */
export function TicketHistory({ lines }: { lines: LedgerLine[] }) {
  const { t } = useTranslation();
  if (lines.length === 0) return <EmptyState>{t("history.empty")}</EmptyState>;
  const columns: Column<LedgerLine>[] = [
    { key: "seq", header: t("history.line"), cell: (line) => <span className={tables.number}>{line.seq}</span> },
    { key: "at", header: t("history.at"), nowrap: true, cell: (line) => <RelativeTime at={line.at} /> },
    { key: "actor", header: t("history.actor"), cell: (line) => (line.actor ? <PersonName person={line.actor} /> : <span className={tables.muted}>{t("history.portal")}</span>) },
    {
      key: "action",
      header: t("history.action"),
      cell: (line) => (
        <span className={tables.stack}>
          <code className={tables.code}>{line.action}</code>
          <span className={`${tables.muted} ${tables.lines}`}>{details(line)}</span>
        </span>
      ),
    },
    { key: "hash", header: t("history.hash"), cell: (line) => <code className={tables.code} title={line.hash}>{line.hash.slice(0, 12)}</code> },
  ];
  return <DataTable label={t("ticket.history")} columns={columns} rows={lines} rowKey={(line) => String(line.seq)} testId="ticket-history" />;
}
