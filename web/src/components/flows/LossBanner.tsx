import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useFlowCoverage } from "../../api/flows";
import { missing } from "../../lib/coverage";
import type { FlowFilter } from "../../lib/flow-filter";
import { useWords } from "../../lib/use-words";
import { Notice } from "../Feedback";
import tables from "../Tables.module.css";

/**
 * LossBanner warns above the flows that some are missing, that no member was watched, or that what is missing could not be read. It renders nothing if
 * everything was watched and nothing was lost. Without a flow store the flows themselves are reported as unavailable.
 */
export function LossBanner({ filter, to }: { filter: FlowFilter; to: string }) {
  const { t } = useTranslation();
  const words = useWords();
  const { data, error } = useFlowCoverage(filter);
  const found = data?.available ? missing(data, filter.cluster) : undefined;
  if (!error && (!found || (found.known && found.clusters.length === 0))) return null;
  const { lost, unwatched, unwatchedSeconds, clusters } = found ?? { lost: 0, unwatched: 0, unwatchedSeconds: 0, clusters: [] };
  const duration = words.span(unwatchedSeconds);
  const gaps = [
    ...(lost > 0 ? [t("flows.banner.lost", { count: lost, number: words.number(lost) })] : []),
    ...(unwatched > 0 ? [t("flows.banner.gap", { duration: unwatched > 1 ? t("flows.banner.upTo", { duration }) : duration })] : []),
  ];
  return (
    <div className={tables.above}>
      {error && <Notice testId="loss-unknown">{t("flows.banner.unknown")}</Notice>}
      {found?.known === false && <Notice testId="nothing-watched">{t("flows.coverage.empty")}</Notice>}
      {clusters.length > 0 && (
        <Notice testId="loss-banner">
          <span className={tables.sentence}>
            {t("flows.banner.text", { clusters: words.list(clusters), what: gaps.join(t("flows.banner.and")) })} <Link to={to}>{t("flows.banner.open")}</Link>
          </span>
        </Notice>
      )}
    </div>
  );
}
