import { IconDoorEnter, IconEyeExclamation, IconInfoCircle, IconPlugConnectedX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { isFinal } from "../../api/client";
import type { Impact as ImpactData, ImpactLine } from "../../api/types";
import { impactCSV, uncertainCSV } from "../../lib/tables/rollout";
import { useWords } from "../../lib/use-words";
import { DecisionBadge } from "../Badge";
import { ConnectionCount } from "../ConnectionCount";
import { DataTable } from "../DataTable";
import { Notice, RowsSkeleton } from "../Feedback";
import { Owners, RefName } from "../Names";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import { RelativeTime, DayAndTime } from "../Time";
import classes from "./Evidence.module.css";
import { EvidencePanel } from "./EvidencePanel";
import { instant } from "../../lib/table-sort";

const lineKey = (line: ImpactLine) => [line.cluster, line.subject.name || line.subject.title, line.resource.name, line.port, line.protocol, line.before, line.after].join("|");

function Lines({ lines, label, name }: { lines: ImpactLine[]; label: string; name: string }) {
  const { t } = useTranslation();
  return (
    <DataTable
      label={label}
      rows={lines}
      rowKey={lineKey}
      rowTestId={() => "impact-line"}
      csv={impactCSV(name)}
      sortParam={`${name}-sort`}
      columns={[
        {
          key: "subject",
          header: t("connections.peerApplication"),
          sortBy: (line) => line.subject.title,
          cell: (line) => (
            <span className={tables.stack}>
              <RefName kind="applications" about={line.subject} />
              {line.owners && line.owners.length > 0 && <span className={tables.muted}><Owners owners={line.owners} /></span>}
            </span>
          ),
        },
        { key: "resource", header: t("connections.peerResource"), cell: (line) => <RefName kind="resources" about={line.resource} />, sortBy: (line) => line.resource.title },
        { key: "action", header: t("connections.action"), sortBy: (line) => line.action ?? `${line.port}/${line.protocol}`, cell: (line) => <span className={tables.stack}>{line.action && <code className={tables.code}>{line.action}</code>}<span className={tables.muted}>{`${line.port}/${line.protocol}`}</span></span> },
        { key: "change", header: t("impact.change"), cell: (line) => <span className={tables.badges}><DecisionBadge decision={line.before} /><span aria-hidden>→</span><DecisionBadge decision={line.after} /></span> },
        { key: "count", header: t("connections.count"), end: true, cell: (line) => <ConnectionCount of={line.count} />, sortBy: (line) => line.count },
        { key: "seen", header: t("impact.seen"), sortBy: (line) => instant(line.lastSeen), cell: (line) => <span className={tables.stack}><RelativeTime at={line.lastSeen} /><span className={tables.muted}>{t("evidence.first")} <RelativeTime at={line.firstSeen} /></span></span> },
        { key: "cluster", header: t("connections.cluster"), cell: (line) => line.cluster, sortBy: (line) => line.cluster },
      ]}
    />
  );
}

function Figures({ impact }: { impact: ImpactData }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <div className={classes.impact}>
      <div className={classes.figure} data-tone={impact.denied.connections > 0 ? "bad" : undefined} data-testid="impact-denied">
        <strong>{words.number(impact.denied.connections)}</strong>
        <span>{t("impact.denied", { count: impact.denied.clients })}</span>
      </div>
      <div className={classes.figure} data-tone={impact.allowed.connections > 0 ? "ok" : undefined} data-testid="impact-allowed">
        <strong>{words.number(impact.allowed.connections)}</strong>
        <span>{t("impact.allowed", { count: impact.allowed.clients })}</span>
      </div>
      <div className={classes.figure}>
        <strong>{words.number(impact.unchanged)}</strong>
        <span>{t("impact.unchanged")}</span>
      </div>
    </div>
  );
}

/** Uncertain lists the periods in which flows were lost or not watched. The replay does not contain them. */
function Uncertain({ impact }: { impact: ImpactData }) {
  const { t } = useTranslation();
  const words = useWords();
  if (impact.uncertain.length === 0) return null;
  return (
    <Section title={t("impact.uncertain")} count={impact.uncertain.length} aside={t("impact.uncertainHelp")} testId="impact-uncertain">
      <DataTable
        label={t("impact.uncertain")}
        rows={impact.uncertain}
        csv={uncertainCSV}
        sortParam="uncertain-sort"
        rowKey={(row) => [row.cluster, row.from, row.to, row.reason.text].join("|")}
        columns={[
          { key: "cluster", header: t("connections.cluster"), cell: (row) => row.cluster, sortBy: (row) => row.cluster },
          { key: "from", header: t("flows.losses.from"), nowrap: true, cell: (row) => <DayAndTime at={row.from} />, sortBy: (row) => instant(row.from) },
          { key: "to", header: t("flows.losses.to"), nowrap: true, cell: (row) => <DayAndTime at={row.to} />, sortBy: (row) => instant(row.to) },
          { key: "reason", header: t("flows.losses.reason"), cell: (row) => words.message(row.reason) },
        ]}
      />
    </Section>
  );
}

/** reported returns connections that would still pass but be reported as audited. */
const reported = ({ otherwise = [] }: ImpactData) => otherwise.filter(({ before, after }) => after === "audited" && before !== after);

/** Impact shows what the change would have done to the connections of the evidence window. The replay of a class may not contain all of its resources. */
export function Impact({ impact, ofClass = false }: { impact: ImpactData; ofClass?: boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!impact.available) return <Notice testId="impact-unavailable">{impact.message ? words.message(impact.message) : t("connections.unavailable")}</Notice>;
  return (
    <div data-testid="impact">
      <p className={tables.muted}>
        {t("impact.window")} <DayAndTime at={impact.since} /> – <DayAndTime at={impact.until} />
      </p>
      <Figures impact={impact} />
      {impact.truncated && <Notice testId="impact-truncated">{t(ofClass ? "impact.truncatedClass" : "impact.truncated")}</Notice>}
      {impact.newlyDenied.length > 0 && (
        <Section title={t("impact.cutOff")} count={impact.newlyDenied.length} testId="newly-denied">
          <Lines name="newly-denied" lines={impact.newlyDenied} label={t("impact.cutOff")} />
        </Section>
      )}
      {impact.newlyAllowed.length > 0 && (
        <Section title={t("impact.letIn")} count={impact.newlyAllowed.length} testId="newly-allowed">
          <Lines name="newly-allowed" lines={impact.newlyAllowed} label={t("impact.letIn")} />
        </Section>
      )}
      {reported(impact).length > 0 && (
        <Section title={t("impact.reported")} count={reported(impact).length} aside={t("impact.reportedHelp")} testId="newly-reported">
          <Lines name="newly-audited" lines={reported(impact)} label={t("impact.reported")} />
        </Section>
      )}
      {(impact.evidence ?? []).map(({ resource, score }) => (
        <Section key={resource.name} title={t("impact.evidenceOf", { resource: resource.title })} aside={t("impact.evidenceHelp")}>
          <EvidencePanel score={score} />
        </Section>
      ))}
      <Uncertain impact={impact} />
    </div>
  );
}

const shortest = 4;

/** useNames returns a function that lists the names of lines without duplicates; of many names, the first and the number of others. */
function useNames() {
  const { t } = useTranslation();
  const words = useWords();
  return (lines: ImpactData["newlyDenied"], atLeast = 0) => {
    const clients = [...new Map(lines.map((line) => [line.subject.name || line.subject.title, line.subject.title])).values()];
    return words.list(clients.length > shortest ? [...clients.slice(0, shortest), t("impact.others", { count: Math.max(atLeast, clients.length) - shortest })] : clients);
  };
}

/** ImpactSummary shows the impact in a few lines, next to a form or a decision. */
export function ImpactSummary({ impact }: { impact: ImpactData }) {
  const { t } = useTranslation();
  const words = useWords();
  const namesOf = useNames();
  if (!impact.available) return <p className={tables.muted} data-testid="impact-short">{impact.message ? words.message(impact.message) : t("connections.unavailable")}</p>;
  const { denied, allowed, newlyDenied, uncertain, truncated } = impact;
  const reportedLines = reported(impact);
  const passing = reportedLines.reduce((sum, { count }) => sum + count, 0);
  return (
    <ul className={classes.short} data-testid="impact-short">
      {denied.connections > 0 || newlyDenied.length > 0 ? (
        <li className={classes.cut} data-testid="short-denied">
          <IconPlugConnectedX size={15} aria-hidden />
          <span>{t(denied.connections > 0 ? "impact.shortDenied" : "impact.shortDeniedOpen", { count: denied.connections, number: words.number(denied.connections), clients: namesOf(newlyDenied, denied.clients) })}</span>
        </li>
      ) : (
        <li className={classes.quiet}>
          <IconInfoCircle size={15} aria-hidden />
          <span>{t("impact.shortNobody")}</span>
        </li>
      )}
      {allowed.connections > 0 && (
        <li className={classes.let} data-testid="short-allowed">
          <IconDoorEnter size={15} aria-hidden />
          <span>{t("impact.shortAllowed", { count: allowed.connections, number: words.number(allowed.connections) })}</span>
        </li>
      )}
      {reportedLines.length > 0 && (
        <li className={classes.quiet} data-testid="short-reported">
          <IconEyeExclamation size={15} aria-hidden />
          <span>{t("impact.shortReported", { count: passing, number: words.number(passing), clients: namesOf(reportedLines) })}</span>
        </li>
      )}
      {truncated && (
        <li className={classes.quiet} data-testid="short-truncated">
          <IconInfoCircle size={15} aria-hidden />
          <span>{t("impact.shortTruncated")}</span>
        </li>
      )}
      {uncertain.length > 0 && (
        <li className={classes.quiet}>
          <IconInfoCircle size={15} aria-hidden />
          <span>{t("impact.shortUncertain", { clusters: words.list([...new Set(uncertain.map((each) => each.cluster))].sort()) })}</span>
        </li>
      )}
    </ul>
  );
}

/** ImpactQuery is the part of a query for an impact that ImpactAnswer uses. */
export interface ImpactQuery {
  data: ImpactData | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** ImpactAnswer shows the impact of a query in a few lines, a placeholder while it is read, and that the impact is unknown if it cannot be read. */
export function ImpactAnswer({ query }: { query: ImpactQuery }) {
  const { t } = useTranslation();
  if (query.data) return <ImpactSummary impact={query.data} />;
  if (!query.error) return <RowsSkeleton rows={1} />;
  return (
    <Notice live testId="impact-unknown">
      {t("impact.shortUnknown")}{" "}
      {!isFinal(query.error) && <button type="button" className={tables.linkButton} onClick={() => void query.refetch()}>{t("action.retry")}</button>}
    </Notice>
  );
}
