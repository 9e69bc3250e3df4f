import { Fragment } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useAccessPeriods } from "../api/queries";
import type { AccessPeriod, AccessPeriodCause, AccessPeriodList } from "../api/types";
import { instant } from "../lib/table-sort";
import { useFilters } from "../lib/use-filters";
import { ModeBadge } from "./Badge";
import { CsvLink } from "./CsvLink";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { ApplicationSelect, ResourceSelect } from "./EntitySelect";
import { EmptyState, Loaded, Notice } from "./Feedback";
import { Section } from "./Page";
import classes from "./History.module.css";
import tables from "./Tables.module.css";
import { DayAndTime } from "./Time";

function TicketLink({ id, visible }: { id: string; visible: boolean | undefined }) {
  const { t } = useTranslation();
  return visible === false ? <span title={t("access.hiddenTicket")}>{id}</span> : <Link to={`/tickets/${id}`}>{id}</Link>;
}

/** Causes describes what began or ended a period. */
function Causes({ causes }: { causes: AccessPeriodCause[] }) {
  const { t } = useTranslation();
  return (
    <span className={tables.stack}>
      {causes.map((cause) => (
        <span key={`${cause.kind} ${cause.ticket ?? ""} ${cause.object ?? ""}`}>
          {t(`periods.cause.${cause.kind}`)} {cause.ticket ? <TicketLink id={cause.ticket} visible={cause.ticketVisible} /> : cause.object && <code className={tables.code}>{cause.object}</code>}
        </span>
      ))}
    </span>
  );
}

function Boundary({ at, causes, absent }: { at: string | undefined; causes: AccessPeriodCause[]; absent: ReactNode }) {
  return (
    <span className={tables.stack}>
      {at === undefined ? <span className={tables.muted}>{absent}</span> : <DayAndTime at={at} />}
      <Causes causes={causes} />
    </span>
  );
}

function Periods({ list, href }: { list: AccessPeriodList; href: string }) {
  const { t } = useTranslation();
  const columns: Column<AccessPeriod>[] = [
    { key: "from", header: t("periods.from"), sortBy: (row) => instant(row.from), cell: (row) => <Boundary at={row.from} causes={row.began} absent="" /> },
    { key: "to", header: t("periods.to"), sortBy: (row) => instant(row.to), cell: (row) => <Boundary at={row.to} causes={row.ended} absent={t("periods.lasts")} /> },
    {
      key: "reach",
      header: t("periods.reach"),
      sortBy: (row) => row.reach,
      cell: (row) => (
        <span className={tables.stack}>
          <strong>{t(`periods.is.${row.reach}`)}</strong>
          {row.reached.map((action) => <code key={action} className={tables.code}>{action}</code>)}
          {row.uncertain && row.reach !== "unknown" && <span className={tables.muted} title={t("periods.uncertainHelp")}>{t("periods.uncertain")}</span>}
        </span>
      ),
    },
    { key: "mode", header: t("periods.mode"), sortBy: (row) => row.mode, cell: (row) => (row.mode ? <ModeBadge mode={row.mode} /> : <span className={tables.muted}>{t("periods.modeUnknown")}</span>) },
    {
      key: "tickets",
      header: t("access.ticket"),
      cell: (row) => row.tickets.map((each, index) => (
        <Fragment key={each.ticket}>
          {index > 0 && ", "}
          <TicketLink id={each.ticket} visible={each.visible} />
        </Fragment>
      )),
    },
  ];
  return (
    <>
      <DataTable sortParam="periods-sort" label={t("periods.title")} columns={columns} rows={list.items} rowKey={(row) => row.from} rowTestId={(row) => `period-${row.reach}`} dim={(row) => row.reach === "none"} testId="periods-table" />
      <Notice testId="periods-begin">
        {list.cut ? t("periods.cut") : t("periods.begin")}
        {list.recordsBegin && !list.cut && <> <DayAndTime at={list.recordsBegin} /></>}
      </Notice>
      {list.items.length > 0 && <CsvLink href={href} testId="periods-csv" />}
    </>
  );
}

/** AccessPeriodsSection answers when an application could reach a resource. One of the two is the subject of the page, and the reader selects the other. */
export function AccessPeriodsSection(about: { resource: string } | { application: string }) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const other = search.get("periods") ?? "";
  const [resource, application] = "resource" in about ? [about.resource, other] : [other, about.application];
  const query = useAccessPeriods(resource, application);
  const select = (value: string | null) => change({ periods: value ?? undefined });
  return (
    <Section anchor="periods" title={t("resource" in about ? "periods.titleResource" : "periods.titleApplication")} testId="periods">
      <div className={classes.picker}>
        {"resource" in about ? (
          <ApplicationSelect size="sm" placeholder={t("periods.selectApplication")} value={other} onChange={select} nothingFound={t("applications.noMatch")} testId="periods-application" />
        ) : (
          <ResourceSelect size="sm" placeholder={t("periods.selectResource")} value={other} onChange={select} nothingFound={t("resources.noMatch")} testId="periods-resource" />
        )}
      </div>
      {other === "" ? (
        <EmptyState testId="periods-choose">{t("resource" in about ? "periods.chooseApplication" : "periods.chooseResource")}</EmptyState>
      ) : (
        <Loaded query={query}>
          {(list) => <Periods list={list} href={`/api/v1/resources/${encodeURIComponent(resource)}/access-periods?format=csv&application=${encodeURIComponent(application)}`} />}
        </Loaded>
      )}
    </Section>
  );
}
