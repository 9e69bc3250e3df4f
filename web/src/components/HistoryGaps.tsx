import { useTranslation } from "react-i18next";
import type { HistoryGap } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "./History.module.css";
import { Notice } from "./Feedback";

/** HistoryGaps shows what the records do not cover, so that an incomplete answer does not look complete. */
export function HistoryGaps({ gaps }: { gaps: HistoryGap[] }) {
  const { t } = useTranslation();
  const words = useWords();
  if (gaps.length === 0) return null;
  return (
    <Notice testId="history-gaps">
      <strong>{t("accessRecords.incomplete")}</strong>
      <ul className={classes.gaps}>
        {gaps.map((gap) => {
          const text = words.message(gap.message);
          return <li key={text}>{text}</li>;
        })}
      </ul>
    </Notice>
  );
}
