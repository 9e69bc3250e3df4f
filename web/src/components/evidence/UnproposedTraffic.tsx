import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../../api/queries";
import type { Proposal, Resource } from "../../api/types";
import { unattributedCSV, unknownPortsCSV } from "../../lib/tables/rollout";
import { instant } from "../../lib/table-sort";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import { CopyName } from "../Names";
import { RequestAccessLink } from "../RequestAccessLink";
import tables from "../Tables.module.css";
import classes from "./Evidence.module.css";
import { EvidenceSummary } from "./EvidenceSummary";
import { NewSinceReview } from "./NewSinceReview";

const flowsOf = (resource: string, search: Record<string, string>) => `/flows?${new URLSearchParams({ resource, window: "14d", ...search }).toString()}`;

/** Unattributed lists sources that no policy can name until a person registers them as workloads. */
function Unattributed({ resource, lines }: { resource: Resource; lines: Proposal["unattributed"] }) {
  const { t } = useTranslation();
  const words = useWords();
  if (lines.length === 0) return null;
  return (
    <section data-testid="unattributed">
      <h3 className={classes.sub}>{t("proposal.unattributed.title", { count: lines.length })}</h3>
      <p className={`${classes.todo} ${tables.sentence}`}>
        {t("proposal.unattributed.todo")} <Link to="/workloads">{t("proposal.unattributed.register")}</Link>
      </p>
      <DataTable
        label={t("proposal.unattributed.title", { count: lines.length })}
        rows={lines}
        rowKey={({ source }) => source}
        rowTestId={() => "unattributed-line"}
        sortParam="unnamed-sort"
        csv={unattributedCSV(resource.id)}
        columns={[
          {
            key: "source",
            header: t("proposal.source"),
            sortBy: ({ source }) => source,
            cell: ({ source, newSinceReview }) => (
              <span className={tables.stack}>
                <span><code className={tables.code}>{source}</code> <CopyName name={source} /></span>
                <NewSinceReview is={newSinceReview} />
              </span>
            ),
          },
          { key: "ports", header: t("resource.ports"), sortBy: ({ ports }) => ports[0], cell: ({ ports }) => words.list(ports) },
          { key: "evidence", header: t("evidence.title"), sortBy: ({ evidence }) => instant(evidence.lastSeen), cell: ({ evidence }) => <EvidenceSummary evidence={evidence} /> },
          { key: "flows", header: t("action.column"), silent: true, end: true, cell: ({ source }) => <Link to={flowsOf(resource.id, { unattributed: "true", q: source })}>{t("proposal.flows")}</Link> },
        ]}
      />
    </section>
  );
}

/** UnknownPorts lists ports that no action of the class contains. Access to them cannot be granted until one does. */
function UnknownPorts({ resource, lines }: { resource: Resource; lines: Proposal["unknownPorts"] }) {
  const { t } = useTranslation();
  const security = useMe().data?.roles.includes("security") ?? false;
  if (lines.length === 0) return null;
  return (
    <section data-testid="unknown-ports">
      <h3 className={classes.sub}>{t("proposal.unknownPorts.title", { count: lines.length })}</h3>
      <p className={classes.todo}>
        {t(security ? "proposal.unknownPorts.todoSecurity" : "proposal.unknownPorts.todo")}{" "}
        {security && resource.class && <RequestAccessLink quiet kind="class" object="ResourceClass" name={resource.class} label={t("resource.ask.class")} />}
      </p>
      <DataTable
        label={t("proposal.unknownPorts.title", { count: lines.length })}
        rows={lines}
        rowKey={(line) => `${line.port}/${line.protocol}/${line.source}`}
        sortParam="ports-sort"
        csv={unknownPortsCSV(resource.id)}
        columns={[
          { key: "port", header: t("resource.ports"), sortBy: ({ port }) => port, cell: (line) => <code className={tables.code}>{`${line.port}/${line.protocol}`}</code> },
          {
            key: "source",
            header: t("proposal.source"),
            sortBy: ({ source }) => source,
            cell: ({ source, newSinceReview }) => (
              <span className={tables.stack}>
                <span>{source}</span>
                <NewSinceReview is={newSinceReview} />
              </span>
            ),
          },
          { key: "evidence", header: t("evidence.title"), sortBy: ({ evidence }) => instant(evidence.lastSeen), cell: ({ evidence }) => <EvidenceSummary evidence={evidence} /> },
          { key: "flows", header: t("action.column"), silent: true, end: true, cell: (line) => <Link to={flowsOf(resource.id, { port: String(line.port) })}>{t("proposal.flows")}</Link> },
        ]}
      />
    </section>
  );
}

/** UnproposedTraffic lists the traffic of a resource that the proposal cannot cover: sources without a known client, and ports without an action. */
export function UnproposedTraffic({ resource, proposal }: { resource: Resource; proposal: Proposal }) {
  return (
    <>
      <Unattributed resource={resource} lines={proposal.unattributed} />
      <UnknownPorts resource={resource} lines={proposal.unknownPorts} />
    </>
  );
}
