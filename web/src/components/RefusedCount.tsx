import { IconShieldX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useWords } from "../lib/use-words";
import badge from "./Badge.module.css";
import tables from "./Tables.module.css";

/** RefusedCount shows a number as a link to its rows. */
export function RefusedCount({ count, to }: { count: number | undefined; to: string }) {
  const { t } = useTranslation();
  const words = useWords();
  if (count === undefined) return <span className={tables.muted} title={t("applications.refusedUnknownHelp")}>{t("applications.refusedUnknown")}</span>;
  if (count === 0) return <span className={tables.muted}>0</span>;
  return (
    <Link to={to} className={`${badge.badge} ${badge.bad}`}>
      <IconShieldX size={14} aria-hidden />
      {words.number(count)}
    </Link>
  );
}
