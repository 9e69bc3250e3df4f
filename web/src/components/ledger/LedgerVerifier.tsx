import { Button, Loader } from "@mantine/core";
import { IconShieldCheck } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { useVerifyLedger } from "../../api/governance";
import type { LedgerVerification } from "../../api/types";
import { ledgerAnchorsCSV } from "../../lib/tables/ledger";
import type { LedgerAnchor } from "../../lib/tables/ledger";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { ErrorState, Notice } from "../Feedback";
import { RelativeTime } from "../Time";
import tables from "../Tables.module.css";
import classes from "./Ledger.module.css";

function Anchors({ anchors }: { anchors: LedgerAnchor[] }) {
  const { t } = useTranslation();
  const words = useWords();
  if (anchors.length === 0) return <Notice testId="no-anchors">{t("ledger.noAnchors")}</Notice>;
  const columns: Column<LedgerAnchor>[] = [
    { key: "anchor", header: t("ledger.anchor"), sortBy: (row) => row.anchor, cell: (row) => <code className={tables.code}>{row.anchor}</code> },
    {
      key: "seq",
      header: t("ledger.anchorLine"),
      sortBy: (row) => row.seq,
      cell: (row) => (
        <span className={tables.stack}>
          <span className={tables.number}>{words.number(row.seq)}</span>
          {row.at && <span className={tables.muted}><RelativeTime at={row.at} /></span>}
        </span>
      ),
    },
    {
      key: "matches",
      header: t("ledger.verify"),
      sortBy: (row) => (row.matches ? 1 : 0),
      cell: (row) => (
        <span className={tables.stack}>
          <span>{row.matches ? <ToneBadge tone="ok" word={t("ledger.agrees")} /> : <ToneBadge tone="bad" word={t("ledger.differs")} />}</span>
          {row.message && <span className={tables.muted}>{words.message(row.message)}</span>}
        </span>
      ),
    },
  ];
  return <DataTable csv={ledgerAnchorsCSV} sortParam="anchor-sort" label={t("ledger.anchors")} columns={columns} rows={anchors} rowKey={(row) => row.anchor} testId="anchors" />;
}

function Result({ result }: { result: LedgerVerification }) {
  const { t } = useTranslation();
  const words = useWords();
  const { intact, lines, head, brokenAt, reason, anchors } = result;
  return (
    <div className={classes.result} role="status" data-testid="verification" data-value={intact ? "intact" : "broken"}>
      <p className={classes.verdict}>
        <ToneBadge tone={intact ? "ok" : "bad"} word={t(intact ? "ledger.intact" : brokenAt === undefined ? "ledger.notAll" : "ledger.broken")} />
        {intact && t("ledger.intactText", { count: lines })}
        {brokenAt !== undefined && t("ledger.brokenAt", { seq: brokenAt })}
      </p>
      {reason && <p>{words.message(reason)}</p>}
      <p className={tables.muted}>
        {t("ledger.head")}: <code className={classes.hash}>{head}</code>
      </p>
      <Anchors anchors={anchors ?? []} />
    </div>
  );
}

/** LedgerVerifier recomputes the hash chain on request and shows the result. */
export function LedgerVerifier() {
  const { t } = useTranslation();
  const verify = useVerifyLedger();
  return (
    <div className={classes.verify}>
      <div className={classes.verdict}>
        <Button variant="default" leftSection={verify.isPending ? <Loader size={14} /> : <IconShieldCheck size={16} aria-hidden />} disabled={verify.isPending} onClick={() => verify.mutate()} data-testid="verify-ledger">
          {t("ledger.verify")}
        </Button>
        <span className={tables.muted} role="status">{t(verify.isPending ? "ledger.verifying" : "ledger.verifyHint")}</span>
      </div>
      {verify.error ? <ErrorState error={verify.error} title={t("error.actionTitle")} onRetry={() => verify.mutate()} /> : null}
      {verify.data && <Result result={verify.data} />}
    </div>
  );
}
