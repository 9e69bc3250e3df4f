import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useApplicationAccess, useMayRequest, useResourceAccess } from "../api/queries";
import type { Access, ConnectionList } from "../api/types";
import { foldedConnectionsCSV } from "../lib/tables/flows";
import { fold, isRefused } from "../lib/folded-connections";
import type { FoldedConnection } from "../lib/folded-connections";
import { grantOf } from "../lib/grants";
import { unlisted } from "../lib/members";
import { useWords } from "../lib/use-words";
import { DecisionBadge } from "./Badge";
import { ClusterChips } from "./ClusterChips";
import { ClusterShares } from "./ClusterShares";
import { ConnectionCount } from "./ConnectionCount";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Notice } from "./Feedback";
import { RefName } from "./Names";
import { RequestAccessLink } from "./RequestAccessLink";
import { RelativeTime } from "./Time";
import classes from "./Tables.module.css";
import { instant } from "../lib/table-sort";

type Peer = "application" | "resource" | "both";

interface Props {
  list: ConnectionList;
  /** Which end of a connection to show; the page is about the other one. */
  peer: Peer;
  label: string;
  empty: string;
  /** request reports whether refused connections can be requested. */
  request?: boolean;
  limit?: number;
}

const refusedRow = (row: FoldedConnection) => row.decisions.some(isRefused);

function Verdict({ row }: { row: FoldedConnection }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <span className={classes.stack}>
      {row.decisions.map((decision) => (
        <span key={decision}>
          <DecisionBadge decision={decision} />
        </span>
      ))}
      {row.letThrough === 0 && row.verdicts.map((verdict) => <span key={verdict} className={classes.muted} data-testid="verdict" data-value={verdict}>{t(`verdict.${verdict}`)}</span>)}
      {row.letThrough > 0 && (
        <span className={classes.muted} title={t("connections.letThroughHelp")} data-testid="let-through">
          {row.count === 0 || row.letThrough === row.count ? t("connections.letThroughAll") : t("connections.letThrough", { number: words.number(row.letThrough) })}
        </span>
      )}
    </span>
  );
}

/** Ask offers what can be done about a refused connection, or explains why nothing can. */
function Ask({ row }: { row: FoldedConnection }) {
  const { t } = useTranslation();
  if (row.subject.id && row.resource.id && row.action) return <RequestAccessLink application={row.subject.id} resource={row.resource.id} action={row.action} />;
  return <span className={classes.why} data-testid="cannot-ask">{row.resource.id ? t("connections.noAction") : t("connections.notInCatalog")}</span>;
}

function DecidedBy({ row }: { row: FoldedConnection }) {
  const { t } = useTranslation();
  if (row.ticket) return <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link>;
  if (row.sid) return <code className={classes.code} title={row.policy}>{row.sid}</code>;
  return <span className={classes.muted}>{t("connections.default")}</span>;
}

/** useGrant returns the grant that allows the connection now, from the list that the reader may see. */
function useGrant(row: FoldedConnection, peer: Peer): { grant: Access | undefined; pending: boolean } {
  const { subject, resource, action } = row;
  const ofResource = peer === "application";
  const known = action !== undefined;
  const byApplication = useApplicationAccess(subject.id ?? "", known && !ofResource && subject.id !== undefined);
  const byResource = useResourceAccess(resource.id ?? "", known && ofResource && resource.id !== undefined);
  const { data, isLoading } = ofResource ? byResource : byApplication;
  return { grant: data && grantOf(data.items, row), pending: isLoading };
}

function Granted({ grant }: { grant: Access }) {
  const { t } = useTranslation();
  const late = grant.clusters?.filter((cluster) => cluster.state !== "Realized");
  // Members that are not listed may also lack the grant.
  const missing = (grant.members?.waiting ?? 0) > 0 ? unlisted(grant.members) : 0;
  return (
    <span className={`${classes.stack} ${classes.sentence}`} data-testid="granted">
      <span>
        {t("connections.granted")}{" "}
        {grant.ticket && grant.ticketVisible !== false ? <Link to={`/tickets/${grant.ticket}`}>{grant.ticket}</Link> : <code className={classes.code} title={grant.policy}>{grant.sid}</code>}
      </span>
      <ClusterChips clusters={late} />
      {missing > 0 && <span className={classes.muted}>{t("members.unlisted", { number: missing })}</span>}
    </span>
  );
}

/** Refused shows for a refused connection the statement that now allows it, otherwise what can be done, otherwise what refused it. */
function Refused({ row, peer, offers }: { row: FoldedConnection; peer: Peer; offers: boolean }) {
  const { grant, pending } = useGrant(row, peer);
  if (grant) return <Granted grant={grant} />;
  if (!offers) return <DecidedBy row={row} />;
  // Nothing is offered until it is known whether the access already exists.
  return pending ? null : <Ask row={row} />;
}

/** ConnectionsTable lists connections, one row per pair of ends and action, with their verdicts and with what decided them or can be requested. */
export function ConnectionsTable({ list, peer, label, empty, request = false, limit }: Props) {
  const offers = useMayRequest() && request;
  const { t } = useTranslation();
  const words = useWords();
  if (!list.available) return <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>;
  const folded = fold(list.items);
  const rows = limit === undefined ? folded : folded.slice(0, limit);
  if (rows.length === 0) return <EmptyState>{list.lastFlow ? empty : t("connections.noFlow")}</EmptyState>;

  const columns: Column<FoldedConnection>[] = [];
  if (peer !== "resource") columns.push({ key: "subject", header: t("connections.peerApplication"), cell: (row) => <RefName kind="applications" about={row.subject} />, sortBy: (row) => row.subject.title });
  if (peer !== "application") columns.push({ key: "resource", header: t("connections.peerResource"), cell: (row) => <RefName kind="resources" about={row.resource} />, sortBy: (row) => row.resource.title });
  columns.push(
    {
      key: "action",
      header: t("connections.action"),
      sortBy: (row) => row.action ?? String(row.ports[0]),
      cell: (row) => (
        <span className={classes.stack}>
          {row.action && <code className={classes.code}>{row.action}</code>}
          <span className={row.action ? classes.muted : classes.number}>{words.list(row.ports)}</span>
        </span>
      ),
    },
    { key: "decision", header: t("connections.decision"), cell: (row) => <Verdict row={row} /> },
    { key: "cluster", header: t("connections.cluster"), cell: (row) => <ClusterShares shares={row.clusters} /> },
    { key: "count", header: t("connections.count"), end: true, cell: (row) => <ConnectionCount of={row.count} />, sortBy: (row) => row.count },
    { key: "seen", header: t("connections.lastSeen"), nowrap: true, cell: (row) => <RelativeTime at={row.lastSeen} />, sortBy: (row) => instant(row.lastSeen) },
    {
      key: "why",
      header: offers ? t("action.column") : t("connections.why"),
      silent: offers,
      end: offers,
      cell: (row) => (refusedRow(row) ? <Refused row={row} peer={peer} offers={offers} /> : <DecidedBy row={row} />),
    },
  );
  return <DataTable partial={rows.length < folded.length} sortParam="connections-sort" label={label} columns={columns} rows={rows} rowKey={(row) => row.key} rowTestId={() => "connection-row"} testId="connections-table" csv={foldedConnectionsCSV} />;
}
