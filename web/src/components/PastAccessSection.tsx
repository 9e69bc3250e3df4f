import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { usePastAccess } from "../api/queries";
import type { PastAccess, PastAccessList, Resource } from "../api/types";
import { flowsPath } from "../lib/flow-link";
import { instant } from "../lib/table-sort";
import { useFilters } from "../lib/use-filters";
import { useWords } from "../lib/use-words";
import { useZone } from "../lib/use-zone";
import { instantOf, wallTime } from "../lib/zone";
import { ModeBadge } from "./Badge";
import { CsvLink } from "./CsvLink";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { EmptyState, Loaded, Notice } from "./Feedback";
import { HistoryGaps } from "./HistoryGaps";
import { Hours } from "./Hours";
import { RefName } from "./Names";
import { Section } from "./Page";
import classes from "./History.module.css";
import tables from "./Tables.module.css";
import { DayAndTime } from "./Time";

/** param is the parameter of the page's URL with the instant in question, so that an answer can be linked. */
const param = "past";

/** usePast returns the instant of the URL as the API has it, undefined if there is none, and a function that changes it. */
function usePast(): [string | undefined, (at: string | undefined) => void] {
  const [search, change] = useFilters();
  const at = new Date(search.get(param) ?? "");
  return [Number.isNaN(at.getTime()) ? undefined : at.toISOString(), (next) => change({ [param]: next })];
}

/** Picker selects the instant in the reader's time zone. */
function Picker({ at, onChange }: { at: string | undefined; onChange: (at: string | undefined) => void }) {
  const { t } = useTranslation();
  const zone = useZone();
  const [text, setText] = useState(at === undefined ? "" : wallTime(new Date(at), zone));
  return (
    <form
      className={classes.picker}
      onSubmit={(event) => {
        event.preventDefault();
        onChange(instantOf(text, zone)?.toISOString());
      }}
    >
      <TextInput type="datetime-local" label={t("past.at")} description={t("past.zone", { zone })} value={text} max={wallTime(new Date(), zone)} onChange={(event) => setText(event.currentTarget.value)} data-testid="past-at" />
      <Button type="submit" variant="default" disabled={instantOf(text, zone) === undefined} data-testid="past-show">
        {t("past.show")}
      </Button>
    </form>
  );
}

function Ticket({ row }: { row: PastAccess }) {
  const { t } = useTranslation();
  if (!row.ticket) return <span className={tables.muted}>{t("access.noTicket")}</span>;
  if (row.ticketVisible === false) return <span title={t("access.hiddenTicket")}>{row.ticket}</span>;
  return (
    <span className={tables.stack}>
      <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link>
      {row.reason && <span className={tables.muted}>{row.reason}</span>}
    </span>
  );
}

/**
 * LastUse shows when the statement last decided. A use is known by a decision that names the statement. Without one it is not known
 * whether there was a use, so it is never shown as unused.
 */
function LastUse({ row }: { row: PastAccess }) {
  const { t } = useTranslation();
  if (!row.lastUsed) return <span className={tables.muted} title={t("past.useUnknownHelp")} data-testid="past-use" data-value="unknown">{t("access.useUnknown")}</span>;
  const to = flowsPath({ policy: row.policy, sid: row.sid });
  return <span data-testid="past-use" data-value="used">{to ? <Link to={to}><DayAndTime at={row.lastUsed} /></Link> : <DayAndTime at={row.lastUsed} />}</span>;
}

/** Reached says what the statements and the mode together did with the actions of a statement. */
function Reached({ row }: { row: PastAccess }) {
  const { t } = useTranslation();
  return (
    <span className={tables.stack}>
      {row.effect === "Deny" && <strong>{t("effect.Deny")}</strong>}
      {row.actions.map((action) => (
        <span key={action}>
          <code className={tables.code}>{action}</code>
          {row.reached && <span className={tables.muted}> {row.reached.includes(action) ? t("past.letThrough") : t("past.refused")}</span>}
        </span>
      ))}
      {row.uncertain && <span className={tables.muted} title={t("past.uncertainHelp")}>{t("past.uncertain")}</span>}
    </span>
  );
}

function Rows({ rows }: { rows: PastAccess[] }) {
  const { t } = useTranslation();
  const columns: Column<PastAccess>[] = [
    { key: "peer", header: t("access.subject"), cell: (row) => <RefName kind="applications" about={row.subject} full />, sortBy: (row) => row.subject.title },
    { key: "actions", header: t("access.actions"), cell: (row) => <Reached row={row} /> },
    { key: "statement", header: t("access.statement"), sortBy: (row) => row.sid, cell: (row) => <code className={tables.code} title={row.policy}>{row.sid}</code> },
    { key: "since", header: t("access.since"), nowrap: true, sortBy: (row) => instant(row.since), cell: (row) => row.since && <DayAndTime at={row.since} /> },
    { key: "until", header: t("access.until"), nowrap: true, sortBy: (row) => instant(row.notAfter), cell: (row) => <span className={tables.stack}>{row.notAfter ? <DayAndTime at={row.notAfter} /> : <span className={tables.muted}>{t("time.untilRevoked")}</span>}<Hours hours={row.hours} /></span> },
    { key: "used", header: t("access.lastUsed"), nowrap: true, sortBy: (row) => instant(row.lastUsed), cell: (row) => <LastUse row={row} /> },
    { key: "ticket", header: t("access.ticket"), sortBy: (row) => row.ticket, cell: (row) => <Ticket row={row} /> },
  ];
  return <DataTable sortParam="past-sort" label={t("past.title")} columns={columns} rows={rows} rowKey={(row) => `${row.policy}/${row.sid}/${row.subject.name}/${row.resource.name}`} rowTestId={(row) => `past-row-${row.sid}`} dim={(row) => !row.counting || row.uncertain} testId="past-table" />;
}

/** Mode shows the mode that the resource had, and the consequences of the mode. */
function Mode({ list }: { list: PastAccessList }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!list.modeKnown || !list.mode) return <Notice testId="past-mode-unknown">{t("past.modeUnknown")}</Notice>;
  const others = list.clusterModes ?? [];
  return (
    <div className={classes.mode} data-testid="past-mode">
      <ModeBadge mode={list.mode} />
      <span>{!list.onboarded ? t("past.notOnboarded") : list.open ? t("past.open", { mode: t(`mode.${list.mode}`) }) : t("past.enforced")}</span>
      {list.temporaryAuditUntil && <span className={tables.muted}>{t("past.temporaryAudit")} <DayAndTime at={list.temporaryAuditUntil} /></span>}
      {others.length > 0 && <span className={tables.muted}>{t("past.clusterModes", { list: words.list(others.map((each) => `${each.cluster}: ${t(`mode.${each.mode}`)}`)) })}</span>}
    </div>
  );
}

function Answer({ list, id }: { list: PastAccessList; id: string }) {
  const { t } = useTranslation();
  const words = useWords();
  // The file begins with notes about what the records do not cover, which are worth a download without an access, too.
  const noted = list.gaps.length > 0 || list.open || list.limited || list.usesMessage !== undefined;
  const empty = list.limited ? "past.emptyLimited" : list.gaps.length > 0 ? "past.emptyGaps" : list.open ? "past.emptyOpen" : "past.empty";
  return (
    <>
      <HistoryGaps gaps={list.gaps} />
      <Mode list={list} />
      {list.usesMessage && <Notice testId="past-uses-message">{words.message(list.usesMessage)}</Notice>}
      {list.items.length === 0 ? <EmptyState testId="past-empty">{t(empty)}</EmptyState> : <Rows rows={list.items} />}
      {(list.items.length > 0 || noted) && <CsvLink href={`/api/v1/resources/${encodeURIComponent(id)}/past-access?format=csv&at=${encodeURIComponent(list.at)}`} testId="past-csv" />}
    </>
  );
}

/** PastAccessSection answers who could reach the resource at an instant that the reader selects. */
export function PastAccessSection({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const [at, setAt] = usePast();
  const query = usePastAccess(resource.id, at);
  return (
    <Section anchor="past" title={t("past.title")} aside={query.data?.limited ? t("resource.othersHidden") : undefined} testId="past">
      <Picker key={at} at={at} onChange={setAt} />
      {at === undefined ? <EmptyState testId="past-choose">{t("past.choose")}</EmptyState> : <Loaded query={query}>{(list) => <Answer list={list} id={resource.id} />}</Loaded>}
    </Section>
  );
}
