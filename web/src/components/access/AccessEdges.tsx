import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useAccessEdges } from "../../api/fleet";
import type { AccessFilter } from "../../api/fleet";
import type { AccessEdge, CatalogRef } from "../../api/types";
import { edgesCSV } from "../../lib/tables/access";
import { flowsPath } from "../../lib/flow-link";
import { shortName } from "../../lib/names";
import { useWords } from "../../lib/use-words";
import { ModeBadge, ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { Loaded, Notice } from "../Feedback";
import { NoRows } from "../govern/NoRows";
import { PolicyOriginText } from "../govern/PolicyOriginText";
import { LoadMore } from "../LoadMore";
import { Hours } from "../Hours";
import { LastUse } from "../LastUse";
import { Owners, RefName } from "../Names";
import type { RefKind } from "../Names";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import classes from "./Access.module.css";
import { Reason, TicketLink } from "../TicketLink";
import { DayAndTime } from "../Time";
import { instant } from "../../lib/table-sort";
import { accessOrdersOf, useServerSort } from "../../lib/use-server-sort";

/** EdgeEnd shows one end of an edge. An end that covers many names has its own text. */
export function EdgeEnd({ about, kind, anyone, teams }: { about: CatalogRef; kind: RefKind; anyone?: boolean; teams: AccessEdge["subjectTeams"] }) {
  const { t } = useTranslation();
  return (
    <span className={tables.stack}>
      {anyone ? <strong>{t("accessMap.everyone")}</strong> : about.id ? <RefName kind={kind} about={about} /> : <span className={tables.title} title={about.name}>{shortName(about.name)}</span>}
      {teams.length > 0 && (
        <span className={tables.muted}>
          <Owners owners={teams} />
        </span>
      )}
    </span>
  );
}

/** useEdgeColumns returns the columns of a table of statements between two names. flows reports whether the flows could be read. */
function useEdgeColumns(flows: boolean): Column<AccessEdge>[] {
  const { t } = useTranslation();
  return [
    { key: "subject", header: t("accessMap.subject"), cell: (row) => <div className={classes.end}><EdgeEnd about={row.subject} kind="applications" anyone={row.subjectKind === "anyone"} teams={row.subjectTeams} /></div>, sortBy: (row) => (row.subjectKind === "anyone" ? "*" : row.subject.title || row.subject.name) },
    {
      key: "resource",
      header: t("accessMap.resource"),
      sortBy: (row) => row.resource.title || row.resource.name,
      cell: (row) => (
        <div className={classes.end}>
          <EdgeEnd about={row.resource} kind="resources" teams={row.resourceTeams} />
          {row.mode && <ModeBadge mode={row.mode} />}
        </div>
      ),
    },
    {
      key: "actions",
      header: t("access.actions"),
      cell: (row) => (
        <span className={tables.stack}>
          {row.effect === "Deny" && (
            <span>
              <ToneBadge tone="bad" word={t("effect.Deny")} />
            </span>
          )}
          {row.actions.map((action) => (
            <code key={action} className={tables.code}>
              {action}
            </code>
          ))}
        </span>
      ),
    },
    {
      key: "policy",
      header: t("acp.statement"),
      sortBy: (row) => `${row.policy}/${row.sid}`,
      cell: (row) => (
        <span className={`${tables.stack} ${classes.policy}`}>
          <Link className={tables.title} to={`/access-policies/${encodeURIComponent(row.policy)}`}>
            {row.policy}
          </Link>
          <span className={tables.muted}>
            <code className={classes.sid}>{row.sid}</code> {!row.counting && <span title={t("access.notCountingHelp")}>{t("access.notCounting")}</span>}
          </span>
        </span>
      ),
    },
    {
      key: "origin",
      header: t("accessMap.origin"),
      cell: (row) => (
        <span className={tables.stack}>
          {row.ticket ? <TicketLink of={row} /> : null}
          <PolicyOriginText origin={row.origin} ticket={row.ticket} />
        </span>
      ),
    },
    { key: "until", header: t("accessMap.until"), cell: (row) => <span className={tables.stack}>{row.notAfter ? <DayAndTime at={row.notAfter} /> : <span className={tables.muted}>{t("accessMap.forever")}</span>}<Hours hours={row.hours} /></span>, sortBy: (row) => instant(row.notAfter) },
    { key: "used", header: t("access.lastUsed"), nowrap: true, cell: (row) => <LastUse use={flows ? { state: row.use, lastUsed: row.lastUsed } : undefined} to={flowsPath({ subject: row.subject, resource: row.resource })} label={t("access.connectionsOf", { subject: row.subject.title, resource: row.resource.title })} />, sortBy: (row) => instant(row.lastUsed) },
    { key: "reason", header: t("access.reason"), cell: (row) => <Reason of={row} /> },
  ];
}


const edgeKey = (row: AccessEdge) => `${row.subject.name} ${row.resource.name} ${row.policy} ${row.sid}`;

/** EdgeTable lists the statements of a path on the access map. */
export function EdgeTable({ rows, label, flows }: { rows: AccessEdge[]; label: string; flows: boolean }) {
  return <DataTable csv={edgesCSV} sortParam="path-sort" label={label} columns={useEdgeColumns(flows)} rows={rows} rowKey={edgeKey} testId="path-edges" />;
}

/** AccessEdges lists the selection of the graph as rows. */
export function AccessEdges({ filter, onClear }: { filter: AccessFilter; onClear: (() => void) | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const orders = accessOrdersOf(filter);
  const query = useAccessEdges({ ...filter, ...useServerSort(orders) });
  const first = query.data?.pages[0];
  const flows = first?.flowsAvailable !== false;
  const columns = useEdgeColumns(flows);
  return (
    <Section title={t("accessMap.rows")} aside={first && t("govern.total", { count: first.total, number: words.number(first.total) })} testId="access-edges">
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <>
              {!flows && <Notice testId="flows-unavailable">{t("accessMap.flowsUnknown")}</Notice>}
              {rows.length > 0 ? <DataTable query={query} csv={edgesCSV} orders={orders} label={t("accessMap.title")} columns={columns} rows={rows} rowKey={edgeKey} testId="access-table" /> : <NoRows onClear={onClear}>{t("accessMap.empty")}</NoRows>}
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </Section>
  );
}
