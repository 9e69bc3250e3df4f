import { ActionIcon } from "@mantine/core";
import { IconChevronRight } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { Connection } from "../../api/types";
import { connectionsCSV } from "../../lib/tables/flows";
import { connectionKey } from "../../lib/connection-key";
import { DecisionBadge, ToneBadge } from "../Badge";
import { ConnectionCount } from "../ConnectionCount";
import { DataTable } from "../DataTable";
import type { Pages } from "../TableDownload";
import { RefName } from "../Names";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import { instant } from "../../lib/table-sort";
import type { ConnectionOrder } from "../../lib/use-server-sort";

/** FlowVerdict shows the dataplane verdict of a connection, marked if it disagrees with the policies. */
export function FlowVerdict({ verdict, disagrees }: Pick<Connection, "verdict" | "disagrees">) {
  const { t } = useTranslation();
  const word = t(`verdict.${verdict}`);
  return disagrees ? <ToneBadge tone="bad" word={word} help={t("flows.disagreesHelp")} testId="disagrees" value={verdict} /> : <span className={tables.muted}>{word}</span>;
}

/** FlowTable lists connections from clients to resources. A row opens the statement that decided and its approvals. */
export function FlowTable({ rows, label, onOpen, query, orders }: { rows: Connection[]; query: Pages<Connection>; orders: readonly ConnectionOrder[]; label: string; onOpen: (key: string) => void }) {
  const { t } = useTranslation();
  return (
    <DataTable
      label={label}
      rows={rows}
      query={query}
      csv={connectionsCSV}
      orders={orders}
      rowKey={connectionKey}
      rowTestId={() => "flow-row"}
      testId="flow-table"
      onRow={(row) => onOpen(connectionKey(row))}
      columns={[
        { key: "subject", header: t("connections.peerApplication"), cell: (row) => <RefName kind="applications" about={row.subject} />, sortBy: (row) => row.subject.title },
        { key: "resource", header: t("connections.peerResource"), cell: (row) => <RefName kind="resources" about={row.resource} />, sortBy: (row) => row.resource.title },
        {
          key: "action",
          header: t("connections.action"),
          sortBy: (row) => row.action ?? String(row.port),
          cell: (row) => (
            <span className={tables.stack}>
              {row.action && <code className={tables.code}>{row.action}</code>}
              <span className={row.action ? tables.muted : tables.number}>{`${row.port}/${row.protocol}`}</span>
            </span>
          ),
        },
        {
          key: "decision",
          header: t("connections.decision"),
          sortBy: (row) => row.decision,
          cell: (row) => (
            <span className={tables.stack}>
              <span>
                <DecisionBadge decision={row.decision} />
              </span>
              <FlowVerdict verdict={row.verdict} disagrees={row.disagrees} />
            </span>
          ),
        },
        { key: "cluster", header: t("connections.cluster"), nowrap: true, cell: (row) => (row.sourceCluster && row.sourceCluster !== row.cluster ? `${row.sourceCluster} → ${row.cluster}` : row.cluster) },
        { key: "count", header: t("connections.count"), end: true, cell: (row) => <ConnectionCount of={row.count} />, sortBy: (row) => row.count },
        { key: "seen", header: t("connections.lastSeen"), nowrap: true, cell: (row) => <RelativeTime at={row.lastSeen} />, sortBy: (row) => instant(row.lastSeen) },
        {
          key: "open",
          header: t("action.column"),
          silent: true,
          end: true,
          cell: (row) => (
            <ActionIcon variant="subtle" color="gray" size="sm" onClick={() => onOpen(connectionKey(row))} aria-label={t("flows.openOf", { subject: row.subject.title, resource: row.resource.title })} data-testid="flow-open">
              <IconChevronRight size={16} aria-hidden />
            </ActionIcon>
          ),
        },
      ]}
    />
  );
}
