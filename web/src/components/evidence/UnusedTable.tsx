import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMayRequest } from "../../api/queries";
import type { CatalogRef, Unused } from "../../api/types";
import { unusedCSV } from "../../lib/tables/access";
import { flowsPath } from "../../lib/flow-link";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import type { Pages } from "../TableDownload";
import { RefName } from "../Names";
import { RequestAccessLink } from "../RequestAccessLink";
import type { RefKind } from "../Names";
import tables from "../Tables.module.css";
import { Reason, TicketLink } from "../TicketLink";
import { RelativeTime } from "../Time";
import classes from "./Evidence.module.css";
import { RevokeUnusedDialog } from "./RevokeUnusedDialog";
import { instant } from "../../lib/table-sort";

const unusedKey = ({ policy, sid }: Unused) => `${policy}/${sid}`;

function Refs({ kind, refs }: { kind: RefKind; refs: CatalogRef[] }) {
  return (
    <span className={tables.stack}>
      {refs.map((about) => (
        <RefName key={about.name || about.title} kind={kind} about={about} />
      ))}
    </span>
  );
}

interface Props {
  rows: Unused[];
  label: string;
  /** Which end of the statement the page is about. */
  about?: RefKind;
  /** The query of the rows, which reads the remaining rows for the file. */
  query?: Pages<Unused>;
}

/** UnusedTable lists statements without traffic and the evidence for it. Those that were granted by tickets can be revoked together. */
export function UnusedTable({ rows, label, about, query }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [revoking, setRevoking] = useState<Unused[]>();
  const mayRequest = useMayRequest();
  const possible = rows.filter((row) => row.canRevoke && row.ticket);
  const chosen = possible.filter((row) => picked.has(unusedKey(row)));
  const all = chosen.length === possible.length;
  const toggle = (key: string) =>
    setPicked((before) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  const columns: Column<Unused>[] = [];
  if (possible.length > 0) {
    columns.push({
      key: "choose",
      header: t("proposal.choose"),
      silent: true,
      cell: (row) => (row.canRevoke && row.ticket ? <Checkbox size="sm" checked={picked.has(unusedKey(row))} onChange={() => toggle(unusedKey(row))} aria-label={t("unused.chooseOf", { sid: row.sid })} data-testid={`unused-${row.sid}`} /> : null),
    });
  }
  if (about !== "applications") columns.push({ key: "subjects", header: t("access.subject"), cell: (row) => <Refs kind="applications" refs={row.subjects} />, sortBy: (row) => row.subjects[0]?.title });
  if (about !== "resources") columns.push({ key: "resources", header: t("access.resource"), cell: (row) => <Refs kind="resources" refs={row.resources} />, sortBy: (row) => row.resources[0]?.title });
  columns.push(
    {
      key: "statement",
      header: t("access.statement"),
      sortBy: (row) => row.sid,
      cell: (row) => (
        <span className={tables.stack}>
          <code className={tables.code} title={row.policy}>{row.sid}</code>
          <Link to={flowsPath({ policy: row.policy, sid: row.sid }) ?? ""} aria-label={t("acp.connectionsOf", { sid: row.sid })}>{t("access.connections")}</Link>
          <span className={tables.muted}>
            {row.effect === "Deny" && `${t("effect.Deny")} `}
            {words.list(row.actions)}
          </span>
        </span>
      ),
    },
    { key: "last", header: t("unused.lastUsed"), nowrap: true, cell: (row) => (row.lastUsed ? <RelativeTime at={row.lastUsed} /> : <span className={tables.muted}>{t("unused.never")}</span>), sortBy: (row) => instant(row.lastUsed) },
    { key: "observed", header: t("unused.observed"), cell: (row) => <span className={tables.why}>{words.message(row.reason)}</span> },
    { key: "ticket", header: t("access.ticket"), sortBy: (row) => row.ticket, nowrap: true, cell: ({ ticket, ticketVisible }) => <TicketLink of={{ ticket, ticketVisible }} /> },
    { key: "reason", header: t("access.reason"), cell: ({ ticket, ticketVisible, ticketReason }) => <Reason of={{ ticket, ticketVisible, reason: ticketReason }} /> },
  );
  // A person who may not revoke the grant can request its revocation, once. The owners of the grant decide that request.
  const requestable = (row: Unused) => mayRequest && row.ticket !== undefined && row.ticketItem !== undefined && !row.canRevoke && row.ticketVisible !== false;
  if (rows.some((row) => row.revocationTicket ?? requestable(row))) {
    columns.push({
      key: "ask",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) => {
        if (row.revocationTicket) {
          return (
            <span className={tables.stack} data-testid={`revocation-${row.sid}`}>
              <span className={tables.muted}>{t("unused.revocation")}</span>
              <TicketLink of={{ ticket: row.revocationTicket, ticketVisible: row.revocationVisible }} />
            </span>
          );
        }
        return requestable(row) ? <RequestAccessLink quiet kind="revoke" target={`${row.ticket}/${row.ticketItem}`} label={t("unused.askRevoke")} testId={`ask-revoke-${row.sid}`} /> : null;
      },
    });
  }
  return (
    <>
      {possible.length > 1 && <Checkbox mb="xs" size="sm" label={t("unused.chooseAll", { count: possible.length })} checked={all} indeterminate={chosen.length > 0 && !all} onChange={() => setPicked(new Set(all ? [] : possible.map(unusedKey)))} data-testid="unused-all" />}
      <DataTable query={query} csv={unusedCSV} sortParam="unused-sort" label={label} columns={columns} rows={rows} rowKey={unusedKey} rowTestId={(row) => `unused-row-${row.sid}`} testId="unused-table" />
      {chosen.length > 0 && (
        <div className={classes.bulk} role="region" aria-label={t("approvals.selected", { count: chosen.length })}>
          <span>{t("approvals.selected", { count: chosen.length })}</span>
          <Button size="xs" color="red" onClick={() => setRevoking(chosen)} data-testid="revoke-unused">
            {t("unused.revoke", { count: chosen.length })}
          </Button>
        </div>
      )}
      {revoking && (
        <RevokeUnusedDialog
          rows={revoking}
          onClose={(done) => {
            setRevoking(undefined);
            if (done) setPicked(new Set());
          }}
        />
      )}
    </>
  );
}
