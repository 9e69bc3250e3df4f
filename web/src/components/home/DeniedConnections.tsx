import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { DeniedConnection, Home } from "../../api/types";
import { deniedCSV } from "../../lib/tables/flows";
import { useWords } from "../../lib/use-words";
import { DecisionBadge } from "../Badge";
import { DataTable } from "../DataTable";
import { EmptyState, Notice } from "../Feedback";
import { RefName } from "../Names";
import { Section } from "../Page";
import { RequestAccessLink } from "../RequestAccessLink";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import { MoreEntries } from "./MoreEntries";
import { instant } from "../../lib/table-sort";

/** refusedPath returns the path of all refused connections of the applications whose connections the portal counted. */
function refusedPath(applications: string[] = []): string {
  const search = new URLSearchParams([["decision", "denied"], ["decision", "default-denied"], ...applications.map((name) => ["subject", name])]);
  return `/flows?${search.toString()}`;
}

function Ask({ row }: { row: DeniedConnection }) {
  const { t } = useTranslation();
  const { ticket } = row;
  if (ticket) {
    return (
      <span className={tables.sentence} data-testid="asked">
        {t("home.requestedIn")} <Link to={`/tickets/${ticket}`}>{ticket}</Link>
      </span>
    );
  }
  if (row.application.id && row.resource.id && row.action) return <RequestAccessLink application={row.application.id} resource={row.resource.id} action={row.action} />;
  return <span className={tables.why} data-testid="cannot-ask">{row.resource.id ? t("connections.noAction") : t("connections.notInCatalog")}</span>;
}

/** DeniedConnections lists refused connections of the reader's applications, each with a link that requests the access. */
export function DeniedConnections({ home }: { home: Home }) {
  const { t } = useTranslation();
  const words = useWords();
  const { denied, deniedCount, deniedCountPartial = false, deniedApplications, deniedLeftOut = 0, flowsAvailable } = home;
  const port = (row: DeniedConnection) => (row.port === undefined ? undefined : [row.port, row.protocol].filter(Boolean).join("/"));
  return (
    <Section title={t("home.refused")} aside={<Link to="/applications">{t("nav.applications")}</Link>} testId="refused">
      {!flowsAvailable && <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>}
      {deniedLeftOut > 0 && (
        <Notice testId="refused-left-out">
          {t("home.refusedLeftOut", { count: deniedLeftOut, number: words.number(deniedLeftOut) })} <Link to="/applications">{t("home.refusedAll")}</Link>
        </Notice>
      )}
      {flowsAvailable && denied.length === 0 && deniedLeftOut === 0 && <EmptyState>{t("home.refusedEmpty")}</EmptyState>}
      {denied.length > 0 && (
        <DataTable
          label={t("home.refused")}
          rows={denied}
          rowKey={(row) => [row.application.name, row.resource.name, row.action, port(row), row.decision].join("|")}
          rowTestId={() => "connection-row"}
          testId="connections-table"
          partial={deniedCount === undefined || deniedCountPartial || deniedCount > denied.length}
          sortParam="refused-sort"
          csv={deniedCSV}
          columns={[
            { key: "application", header: t("connections.peerApplication"), cell: (row) => <RefName kind="applications" about={row.application} />, sortBy: (row) => row.application.title },
            { key: "resource", header: t("connections.peerResource"), cell: (row) => <RefName kind="resources" about={row.resource} />, sortBy: (row) => row.resource.title },
            {
              key: "action",
              header: t("connections.action"),
              cell: (row) => (
                <span className={tables.stack}>
                  {row.action && <code className={tables.code}>{row.action}</code>}
                  {row.port !== undefined && <span className={row.action ? tables.muted : tables.number}>{port(row)}</span>}
                </span>
              ),
            },
            { key: "decision", header: t("connections.decision"), cell: (row) => row.decision && <DecisionBadge decision={row.decision} /> },
            { key: "count", header: t("connections.count"), end: true, cell: (row) => words.number(row.count), sortBy: (row) => row.count },
            { key: "seen", header: t("connections.lastSeen"), nowrap: true, cell: (row) => <RelativeTime at={row.lastSeen} />, sortBy: (row) => instant(row.lastSeen) },
            { key: "ask", header: t("action.column"), silent: true, end: true, cell: (row) => <Ask row={row} /> },
          ]}
        />
      )}
      <MoreEntries of="connections" count={deniedCount} shown={denied.length} partial={deniedCountPartial} to={refusedPath(deniedApplications)} testId="refused-more" />
    </Section>
  );
}
