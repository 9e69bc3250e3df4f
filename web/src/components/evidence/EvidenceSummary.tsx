import { useTranslation } from "react-i18next";
import type { SeenEvidence } from "../../api/types";
import { useWords } from "../../lib/use-words";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";

/** EvidenceSummary shows how often a connection was seen, on how many of the watched days, in which members, and since when. */
export function EvidenceSummary({ evidence }: { evidence: SeenEvidence }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <span className={tables.stack}>
      <span className={tables.number}>
        {evidence.count === 0 ? <span title={t("connections.openHelp")}>{t("evidence.open")}</span> : t("evidence.seen", { count: evidence.count, number: words.number(evidence.count) })} · {t("evidence.days", { count: evidence.daysObserved, days: evidence.days })}
      </span>
      <span className={tables.muted}>
        {t("evidence.first")} <RelativeTime at={evidence.firstSeen} /> · {t("evidence.last")} <RelativeTime at={evidence.lastSeen} /> · {words.list(evidence.clusters)}
      </span>
    </span>
  );
}
