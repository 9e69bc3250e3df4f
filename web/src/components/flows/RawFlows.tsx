import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useRawFlows } from "../../api/flows";
import type { CatalogRef, RawFlow } from "../../api/types";
import { rawFlowsCSV } from "../../lib/tables/flows";
import type { FlowFilter } from "../../lib/flow-filter";
import { useWords } from "../../lib/use-words";
import { DecisionBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Pages } from "../TableDownload";
import { EmptyState, Loaded, Notice } from "../Feedback";
import { LoadMore } from "../LoadMore";
import { RefName } from "../Names";
import tables from "../Tables.module.css";
import { PreciseTime } from "../Time";
import { FlowVerdict } from "./FlowTable";
import classes from "./Flows.module.css";

function End({ kind, about, address }: { kind: "applications" | "resources"; about: CatalogRef; address: string | undefined }) {
  return (
    <span className={classes.ends}>
      <RefName kind={kind} about={about} />
      {address && <span className={classes.address}>{address}</span>}
    </span>
  );
}

/** withPort returns address and port; an IPv6 address is in brackets. */
const withPort = (address: string | undefined, port: number | undefined): string | undefined =>
  address === undefined || port === undefined || port === 0 ? address : address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;

function RawTable({ rows, query }: { rows: RawFlow[]; query: Pages<RawFlow> }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <DataTable
      label={t("flows.tabs.raw")}
      rows={rows}
      query={query}
      csv={rawFlowsCSV}
      rowKey={(row) => [row.time, row.node, row.sourceAddress, row.sourcePort, row.destinationAddress, row.port, row.decision, row.verdict].join("|")}
      rowTestId={() => "raw-row"}
      testId="raw-table"
      columns={[
        { key: "time", header: t("flows.time"), nowrap: true, cell: (row) => <PreciseTime at={row.time} />, sortBy: (row) => row.time },
        { key: "subject", header: t("flows.from"), cell: (row) => <End kind="applications" about={row.subject} address={withPort(row.sourceAddress, row.sourcePort)} /> },
        { key: "resource", header: t("flows.to"), cell: (row) => <End kind="resources" about={row.resource} address={withPort(row.destinationAddress, row.port)} /> },
        { key: "port", header: t("connections.action"), cell: (row) => <span className={tables.stack}>{row.action && <code className={tables.code}>{row.action}</code>}<span className={tables.muted}>{`${row.port}/${row.protocol}`}</span></span> },
        { key: "cluster", header: t("connections.cluster"), cell: (row) => <span className={tables.stack}>{row.cluster}{row.node && <span className={tables.muted}>{row.node}</span>}</span> },
        {
          key: "decision",
          header: t("connections.decision"),
          cell: (row) => (
            <span className={tables.stack}>
              <span><DecisionBadge decision={row.decision} /></span>
              <FlowVerdict verdict={row.verdict} disagrees={row.disagrees} />
              {row.reason && <span className={tables.muted}>{words.message(row.reason)}</span>}
            </span>
          ),
        },
        { key: "count", header: t("connections.count"), end: true, cell: (row) => words.number(row.count), sortBy: (row) => row.count },
      ]}
    />
  );
}

/** NoneKept explains that most stores keep only a sample of single flows, while connections count all of them. */
function NoneKept({ search }: { search: URLSearchParams }) {
  const { t } = useTranslation();
  const counted = new URLSearchParams(search);
  counted.delete("tab");
  return (
    <EmptyState
      action={
        <Button component={Link} to={{ search: counted.toString() }} variant="default" data-testid="raw-connections">
          {t("flows.rawConnections")}
        </Button>
      }
    >
      {t("flows.rawEmpty")}
    </EmptyState>
  );
}

/** RawFlows lists single flows with addresses and nodes. The store keeps them for days. */
export function RawFlows({ filter, search }: { filter: FlowFilter; search: URLSearchParams }) {
  const { t } = useTranslation();
  const query = useRawFlows(filter);
  return (
    <>
      <p className={tables.muted}>{t("flows.rawHelp")}</p>
      <Loaded query={query}>
        {(data) => {
          if (data.pages.some((page) => !page.available)) return <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>;
          const rows = data.pages.flatMap((page) => page.items);
          return rows.length === 0 ? <NoneKept search={search} /> : <RawTable rows={rows} query={query} />;
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}
