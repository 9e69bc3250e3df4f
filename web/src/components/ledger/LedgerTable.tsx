import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { LedgerLine } from "../../api/types";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import type { Pages } from "../TableDownload";
import { InfoDialog } from "../InfoDialog";
import { PersonName } from "../Names";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import classes from "./Ledger.module.css";
import { LedgerAction } from "./LedgerAction";
import { ledgerLinesCSV } from "../../lib/tables/ledger";
import { detailsOf } from "../../lib/ledger-line";
import type { LedgerDetail } from "../../lib/ledger-line";
import { instant } from "../../lib/table-sort";
import { ledgerOrders } from "../../lib/use-server-sort";
import { useWords } from "../../lib/use-words";

/** About links a ticket; any other object is shown as it was written. */
function About({ object }: { object: string }) {
  return /^T-\d{1,12}$/.test(object) ? <Link to={`/tickets/${object}`}>{object}</Link> : <code className={classes.hash}>{object}</code>;
}

function Actor({ line }: { line: LedgerLine }) {
  const { t } = useTranslation();
  return line.actor ? <PersonName person={line.actor} /> : <span className={tables.muted}>{t("history.portal")}</span>;
}

/** Whole shows a whole line. It is evidence, so nothing is left out: translated texts have what was recorded beside them. */
function Whole({ line, onClose }: { line: LedgerLine; onClose: () => void }) {
  const { t } = useTranslation();
  const details = detailsOf(line);
  return (
    <InfoDialog title={t("ledger.details", { seq: line.seq })} size="lg" onClose={onClose}>
      <dl className={classes.details} data-testid="ledger-line">
        <dt>{t("ledger.at")}</dt>
        <dd>
          <code className={classes.hash}>{line.at}</code>
        </dd>
        <dt>{t("ledger.actor")}</dt>
        <dd><Actor line={line} /></dd>
        <dt>{t("ledger.action")}</dt>
        <dd><LedgerAction line={line} /></dd>
        <dt>{t("ledger.object")}</dt>
        <dd><About object={line.object} /></dd>
        {details.map((detail) => (
          <Detail key={detail.key} detail={detail} />
        ))}
        <dt>{t("ledger.hash")}</dt>
        <dd><code className={classes.hash}>{line.hash}</code></dd>
        <dt>{t("ledger.prev")}</dt>
        <dd><code className={classes.hash}>{line.prev || "–"}</code></dd>
      </dl>
      {details.length === 0 && <p className={tables.muted}>{t("ledger.noDetails")}</p>}
    </InfoDialog>
  );
}

function Detail({ detail: { key, value, label, texts } }: { detail: LedgerDetail }) {
  const words = useWords();
  const text = texts?.map((each) => words.message(each)).join("\n");
  return (
    <>
      <dt title={key}>{label ? words.message(label) : key}</dt>
      <dd>
        {text ?? value}
        {text !== undefined && text !== value && (
          <>
            {"\n"}
            <code className={`${classes.hash} ${tables.muted}`}>{value}</code>
          </>
        )}
      </dd>
    </>
  );
}

/** LedgerTable lists lines of the ledger, and shows the details of a line when it is opened. */
export function LedgerTable({ lines, query }: { lines: LedgerLine[]; query: Pages<LedgerLine> }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<LedgerLine>();
  const columns: Column<LedgerLine>[] = [
    {
      key: "seq",
      header: t("ledger.line"),
      sortBy: (line) => line.seq,
      cell: (line) => (
        <button type="button" className={`${tables.linkButton} ${tables.number}`} onClick={() => setOpen(line)} aria-label={t("ledger.about", { seq: line.seq })} data-testid={`line-${line.seq}`}>
          {line.seq}
        </button>
      ),
    },
    { key: "at", header: t("ledger.at"), nowrap: true, cell: (line) => <RelativeTime at={line.at} />, sortBy: (line) => instant(line.at) },
    { key: "actor", header: t("ledger.actor"), cell: (line) => <Actor line={line} />, sortBy: (line) => line.actor?.displayName },
    { key: "action", header: t("ledger.action"), cell: (line) => <LedgerAction line={line} />, sortBy: (line) => line.action },
    { key: "object", header: t("ledger.object"), cell: (line) => <About object={line.object} />, sortBy: (line) => line.object },
    { key: "hash", header: t("ledger.hash"), cell: (line) => <code className={tables.code} title={line.hash}>{line.hash.slice(0, 12)}</code> },
  ];
  return (
    <>
      <DataTable query={query} csv={ledgerLinesCSV} orders={ledgerOrders} label={t("ledger.title")} columns={columns} rows={lines} rowKey={(line) => String(line.seq)} rowTestId={(line) => `ledger-${line.seq}`} />
      {open && <Whole line={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}
