import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useFlowCoverage } from "../../api/flows";
import { missing } from "../../lib/coverage";
import type { FlowFilter } from "../../lib/flow-filter";
import { useWords } from "../../lib/use-words";
import { Notice } from "../Feedback";
import tables from "../Tables.module.css";

/** LossBanner warns above the flows that some are missing. It renders nothing if no loss is known. */
export function LossBanner({ filter, to }: { filter: FlowFilter; to: string }) {
  const { t } = useTranslation();
  const words = useWords();
  const { data } = useFlowCoverage(filter);
  if (!data?.available) return null;
  const { lost, gapSeconds, clusters } = missing(data.items, filter.cluster);
  if (clusters.length === 0) return null;
  const gaps = [...(lost > 0 ? [t("flows.banner.lost", { count: lost, number: words.number(lost) })] : []), ...(gapSeconds > 0 ? [t("flows.banner.gap", { duration: words.span(gapSeconds) })] : [])];
  return (
    <div className={tables.above}>
      <Notice testId="loss-banner">
        <span className={tables.sentence}>
          {t("flows.banner.text", { clusters: words.list(clusters), what: gaps.join(t("flows.banner.and")) })} <Link to={to}>{t("flows.banner.open")}</Link>
        </span>
      </Notice>
    </div>
  );
}
