import { BarChart } from "@mantine/charts";
import "@mantine/charts/styles.layer.css";
import { useTranslation } from "react-i18next";
import type { Decision } from "../../api/types";
import type { Step } from "../../lib/series";
import { dayAndTime } from "../../lib/time";
import { useWords } from "../../lib/use-words";
import { useZone } from "../../lib/use-zone";
import classes from "./Flows.module.css";
import { decisionColors } from "./decision-colors";

interface Props {
  steps: Step[];
  shown: Decision[];
  /** Labels within one day show only the time. */
  days: boolean;
  onStep: (start: number) => void;
}

const indexOf = (state: unknown): number | undefined => {
  if (typeof state !== "object" || state === null || !("activeTooltipIndex" in state)) return undefined;
  const index = Number(state.activeTooltipIndex);
  return Number.isInteger(index) ? index : undefined;
};

/** SeriesChart is loaded lazily, because the chart library is larger than the rest of the page. A table next to it has the same numbers. */
export function SeriesChart({ steps, shown, days, onStep }: Props) {
  const { t, i18n } = useTranslation();
  const words = useWords();
  const zone = useZone();
  const short = new Intl.DateTimeFormat(i18n.language, { timeZone: zone, hourCycle: "h23", ...(days ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" }) });
  const compact = new Intl.NumberFormat(i18n.language, { notation: "compact" });
  return (
    <div className={classes.chart} aria-hidden data-testid="flow-chart">
      <BarChart
        h={180}
        data={steps}
        dataKey="start"
        type="stacked"
        series={shown.map((decision) => ({ name: decision, label: t(`decision.${decision}`), color: decisionColors[decision] }))}
        tickLine="none"
        gridAxis="y"
        valueFormatter={(value) => words.number(value)}
        yAxisProps={{ width: 44, allowDecimals: false, tickFormatter: (value: number) => compact.format(value) }}
        xAxisProps={{ minTickGap: 48, tickFormatter: (start: number) => short.format(start) }}
        tooltipProps={{ labelFormatter: (start) => (typeof start === "number" ? dayAndTime(new Date(start), i18n.language, zone) : "") }}
        tooltipAnimationDuration={0}
        barProps={{ isAnimationActive: false }}
        barChartProps={{
          barCategoryGap: 1,
          accessibilityLayer: false,
          onClick: (state: unknown) => {
            const step = steps[indexOf(state) ?? -1];
            if (step) onStep(step.start);
          },
        }}
      />
    </div>
  );
}
