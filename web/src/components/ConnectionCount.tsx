import { useTranslation } from "react-i18next";
import { useWords } from "../lib/use-words";
import tables from "./Tables.module.css";

/** ConnectionCount shows the number of new connections. If there are none, it says that older connections are still open. */
export function ConnectionCount({ of }: { of: number }) {
  const { t } = useTranslation();
  const words = useWords();
  if (of > 0) return words.number(of);
  return (
    <span className={tables.muted} title={t("connections.openHelp")} data-testid="still-open">
      {t("connections.open")}
    </span>
  );
}
