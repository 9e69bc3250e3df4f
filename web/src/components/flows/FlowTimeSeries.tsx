import { Skeleton } from "@mantine/core";
import { Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { useFlowSeries } from "../../api/flows";
import type { Decision, FlowSeries } from "../../api/types";
import { seriesCSV } from "../../lib/tables/flows";
import type { FlowFilter } from "../../lib/flow-filter";
import { lazyPart } from "../../lib/page-load";
import { stepsOf, totalsOf } from "../../lib/series";
import { secondsPerDay } from "../../lib/time";
import type { FilterChange } from "../../lib/use-filters";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import { EmptyState, Loaded, Notice } from "../Feedback";
import { DayAndTime } from "../Time";
import { decisionColors } from "./decision-colors";
import classes from "./Flows.module.css";

const SeriesChart = lazyPart(async () => (await import("./SeriesChart")).SeriesChart);

const waiting = <Skeleton height={180} data-testid="skeleton" />;

/** Legend shows the totals; each total filters the rows by its decision. */
function Legend({ totals, chosen, onChange }: { totals: ReturnType<typeof totalsOf>; chosen: Decision[]; onChange: (change: FilterChange) => void }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <div className={classes.legend}>
      {totals.map(({ decision, count }) => {
        const pressed = chosen.includes(decision);
        return (
          <button
            key={decision}
            type="button"
            className={classes.total}
            aria-pressed={pressed}
            title={t(`decisionHelp.${decision}`)}
            onClick={() => onChange({ decision: pressed ? chosen.filter((each) => each !== decision) : [...chosen, decision] })}
            data-testid={`total-${decision}`}
          >
            <span className={classes.swatch} style={{ background: decisionColors[decision] }} aria-hidden />
            {t(`decision.${decision}`)} <strong>{words.number(count)}</strong>
          </button>
        );
      })}
    </div>
  );
}

/** AsTable shows the numbers of the chart as a table, for screen readers. */
function AsTable({ series, shown }: { series: FlowSeries; shown: Decision[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const [open, setOpen] = useState(false);
  const rows = open ? stepsOf(series).filter((step) => shown.some((decision) => step[decision] !== undefined)) : [];
  return (
    <details className={classes.asTable} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("flows.asTable")}</summary>
      {open && (
        // A scrollable region must be reachable by keyboard.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div tabIndex={0} role="region" aria-label={t("flows.series")}>
          <DataTable
            label={t("flows.series")}
            rows={rows}
            rowKey={({ start }) => String(start)}
            csv={seriesCSV(shown)}
            sortParam="series-sort"
            columns={[
              { key: "start", header: t("flows.stepStart"), nowrap: true, cell: ({ start }) => <DayAndTime at={new Date(start).toISOString()} />, sortBy: ({ start }) => start },
              ...shown.map((decision) => ({ key: decision, header: t(`decision.${decision}`), end: true, cell: (step: (typeof rows)[number]) => words.number(step[decision] ?? 0), sortBy: (step: (typeof rows)[number]) => step[decision] ?? 0 })),
            ]}
          />
        </div>
      )}
    </details>
  );
}

/** FlowTimeSeries shows the number of connections in the window by decision. A bar narrows the window to its step. */
export function FlowTimeSeries({ filter, onChange }: { filter: FlowFilter; onChange: (change: FilterChange) => void }) {
  const { t } = useTranslation();
  const query = useFlowSeries(filter);
  return (
    <section className={classes.series} aria-label={t("flows.series")} data-testid="flow-series">
      <Loaded query={query} skeleton={waiting}>
        {(series) => {
          if (!series.available) return <Notice testId="flows-unavailable">{t("connections.unavailable")}</Notice>;
          const totals = totalsOf(series);
          const shown = totals.map(({ decision }) => decision);
          if (shown.length === 0) return <EmptyState>{t("flows.seriesEmpty")}</EmptyState>;
          return (
            <>
              <Legend totals={totals} chosen={filter.decision} onChange={onChange} />
              <Suspense fallback={waiting}>
                <SeriesChart
                  steps={stepsOf(series)}
                  shown={shown}
                  days={Date.parse(series.until) - Date.parse(series.since) > 2 * secondsPerDay * 1_000}
                  onStep={(start) => onChange({ window: undefined, since: new Date(start).toISOString(), until: new Date(start + series.stepSeconds * 1_000).toISOString() })}
                />
              </Suspense>
              <AsTable series={series} shown={shown} />
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
