import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Connection, ConnectionList } from "../api/types";
import { useWords } from "../lib/use-words";
import { DecisionBadge } from "./Badge";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Notice } from "./Feedback";
import { RefName } from "./Names";
import { RequestAccessLink } from "./RequestAccessLink";
import { Ago } from "./Time";
import classes from "./Tables.module.css";

interface Props {
  list: ConnectionList;
  /** Which end to name; the other one is the page's. */
  peer: "application" | "resource" | "both";
  label: string;
  empty: string;
  /** Offers to ask for what was refused. */
  request?: boolean;
  limit?: number;
}

const isRefused = (connection: Connection) => connection.decision === "denied" || connection.decision === "default-denied";

const keyOf = (c: Connection) => [c.subject.name, c.resource.name, c.cluster, c.sourceCluster, c.port, c.protocol, c.decision, c.verdict, c.policy, c.sid].join("|");

export function ConnectionsTable({ list, peer, label, empty, request = false, limit }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  if (!list.available) return <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>;
  const rows = limit === undefined ? list.items : list.items.slice(0, limit);
  if (rows.length === 0) return <EmptyState>{list.lastFlow ? empty : t("connections.noFlow")}</EmptyState>;

  const columns: Column<Connection>[] = [];
  if (peer !== "resource") columns.push({ key: "subject", header: t("connections.peerApplication"), cell: (row) => <RefName kind="applications" about={row.subject} /> });
  if (peer !== "application") columns.push({ key: "resource", header: t("connections.peerResource"), cell: (row) => <RefName kind="resources" about={row.resource} /> });
  columns.push(
    { key: "decision", header: t("connections.decision"), cell: (row) => (
        <span className={classes.stack}>
          <span>
            <DecisionBadge decision={row.decision} />
          </span>
          <span className={classes.muted} data-testid="verdict" data-value={row.verdict}>{t(`verdict.${row.verdict}`)}</span>
        </span>
      ) },
    {
      key: "action",
      header: t("connections.action"),
      cell: (row) => (
        <span className={classes.stack}>
          {row.action && <code className={classes.code}>{row.action}</code>}
          <span className={classes.muted}>{`${row.port}/${row.protocol}`}</span>
        </span>
      ),
    },
    {
      key: "cluster",
      header: t("connections.cluster"),
      cell: (row) => (
        <span className={classes.stack}>
          {row.cluster}
          {row.sourceCluster && row.sourceCluster !== row.cluster && <span className={`${classes.muted} ${classes.nowrap}`}>{t("connections.from", { cluster: row.sourceCluster })}</span>}
        </span>
      ),
    },
    { key: "count", header: t("connections.count"), end: true, cell: (row) => words.number(row.count) },
    { key: "seen", header: t("connections.lastSeen"), nowrap: true, cell: (row) => <Ago at={row.lastSeen} /> },
    {
      key: "why",
      header: request ? t("action.column") : t("connections.why"),
      silent: request,
      end: request,
      cell: (row) => {
        // Without an action the port belongs to none that could be asked for.
        if (request && isRefused(row) && row.subject.id && row.resource.id && row.action) return <RequestAccessLink application={row.subject.id} resource={row.resource.id} action={row.action} />;
        if (row.ticket) return <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link>;
        if (row.sid) return <code className={classes.code} title={row.policy}>{row.sid}</code>;
        return <span className={classes.muted}>{t("connections.default")}</span>;
      },
    },
  );
  return <DataTable label={label} columns={columns} rows={rows} rowKey={keyOf} rowTestId={() => "connection-row"} testId="connections-table" />;
}
