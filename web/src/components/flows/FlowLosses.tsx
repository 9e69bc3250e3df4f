import { useTranslation } from "react-i18next";
import { useFlowCoverage, useFlowLosses } from "../../api/flows";
import type { FlowCoverageList, FlowLoss } from "../../api/types";
import { lossesCSV } from "../../lib/tables/flows";
import { byDay, lossReasons, percent, qualityOf, unwatchedSeconds, watchedShare } from "../../lib/coverage";
import type { FlowFilter } from "../../lib/flow-filter";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import type { Pages } from "../TableDownload";
import { EmptyState, Loaded, Notice } from "../Feedback";
import { LoadMore } from "../LoadMore";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import { RelativeTime, DayAndTime } from "../Time";
import classes from "./Flows.module.css";
import { instant } from "../../lib/table-sort";

const reasonOf = (reason: string) => lossReasons.find((each) => each === reason) ?? "unknown";

/** Days shows the watched share of each day: one row per member, one column per day. */
function Days({ list, rows, days }: { list: FlowCoverageList } & ReturnType<typeof byDay>) {
  const { t, i18n } = useTranslation();
  const words = useWords();
  const day = new Intl.DateTimeFormat(i18n.language, { timeZone: "UTC", month: "short", day: "numeric" });
  return (
    // A scrollable region must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={classes.days} tabIndex={0} role="region" aria-label={t("flows.coverage.title")} data-testid="coverage">
      <table>
        <thead>
          <tr>
            <th scope="col">{t("connections.cluster")}</th>
            <th scope="col">{t("flows.coverage.newest")}</th>
            {days.map((each) => (
              <th key={each} scope="col">{day.format(new Date(`${each}T00:00:00Z`))}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const newest = list.lastFlow?.[row.cluster];
            return (
              <tr key={row.cluster}>
                <th scope="row">{row.cluster}</th>
                <td>{newest ? <RelativeTime at={newest} /> : t("flows.coverage.none")}</td>
                {days.map((each) => {
                  const known = row.days.get(each);
                  const share = known ? watchedShare(known, list.since, list.until) : 0;
                  const lost = known?.lost ?? 0;
                  return (
                    <td key={each}>
                      <span className={classes[qualityOf(share, lost)]} title={t("flows.coverage.help", { lost: words.number(lost), gap: words.span(unwatchedSeconds(known, each, list.since, list.until)) })}>
                        {percent(share)}%{lost > 0 && ` −${words.number(lost)}`}
                      </span>
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function LossTable({ losses, query }: { losses: FlowLoss[]; query: Pages<FlowLoss> }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <DataTable
      label={t("flows.losses.title")}
      rows={losses}
      query={query}
      csv={lossesCSV}
      rowKey={(row) => [row.cluster, row.node, row.reason, row.from, row.to].join("|")}
      rowTestId={() => "loss-row"}
      columns={[
        { key: "cluster", header: t("connections.cluster"), cell: (row) => <span className={tables.stack}>{row.cluster}{row.node && <span className={tables.muted}>{row.node}</span>}</span>, sortBy: (row) => `${row.cluster} ${row.node ?? ""}` },
        { key: "reason", header: t("flows.losses.reason"), cell: (row) => <span className={tables.stack}>{t(`flows.losses.reasons.${reasonOf(row.reason)}`)}<span className={tables.muted}>{t(`flows.losses.help.${reasonOf(row.reason)}`)}</span></span> },
        { key: "count", header: t("flows.losses.count"), end: true, cell: (row) => (row.count > 0 ? words.number(row.count) : t("flows.losses.unknownCount")), sortBy: (row) => (row.count > 0 ? row.count : undefined) },
        { key: "from", header: t("flows.losses.from"), nowrap: true, cell: (row) => <DayAndTime at={row.from} />, sortBy: (row) => instant(row.from) },
        { key: "to", header: t("flows.losses.to"), nowrap: true, cell: (row) => <DayAndTime at={row.to} />, sortBy: (row) => instant(row.to) },
      ]}
    />
  );
}

/** FlowLosses shows which flows are known to be missing, because an absent flow proves nothing where flows were lost. */
export function FlowLosses({ filter }: { filter: FlowFilter }) {
  const { t } = useTranslation();
  const coverage = useFlowCoverage(filter);
  const losses = useFlowLosses(filter);
  const unavailable = <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>;
  return (
    <>
      <Section title={t("flows.coverage.title")} aside={t("flows.coverage.aside")}>
        <Loaded query={coverage}>
          {(list) => {
            if (!list.available) return unavailable;
            const { days, rows } = byDay(list, filter.cluster);
            return rows.length === 0 ? <EmptyState>{t("flows.coverage.empty")}</EmptyState> : <Days list={list} days={days} rows={rows} />;
          }}
        </Loaded>
      </Section>
      <Section title={t("flows.losses.title")} testId="losses">
        <Loaded query={losses}>
          {(data) => {
            if (data.pages.some((page) => !page.available)) return unavailable;
            const rows = data.pages.flatMap((page) => page.items);
            return rows.length === 0 ? <EmptyState>{t("flows.losses.empty")}</EmptyState> : <LossTable losses={rows} query={losses} />;
          }}
        </Loaded>
        <LoadMore query={losses} />
      </Section>
    </>
  );
}
