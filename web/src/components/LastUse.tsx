import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Use } from "../api/types";
import classes from "./Tables.module.css";
import { RelativeTime } from "./Time";

interface Props {
  use: Use;
  /** The path of the connections; undefined if they have no page. */
  to?: string | undefined;
  /** The name of that link for screen readers, if it shows no time. */
  label?: string | undefined;
}

/** LastUse shows when an access was last used. That no use was seen is only reported as such if the resource was watched well enough. */
export function LastUse({ use, to, label }: Props) {
  const { t } = useTranslation();
  if (use === null) return <span className={classes.muted} data-testid="last-use" data-value="loading">…</span>;
  if (use === undefined) return <span className={classes.muted} title={t("access.useUnknownHelp")} data-testid="last-use" data-value="unavailable">{t("access.useUnknown")}</span>;
  const at = use.lastUsed;
  const text =
    at !== undefined ? (
      <RelativeTime at={at} />
    ) : (
      <span className={classes.muted} title={t(use.state === "unused" ? "access.notUsedHelp" : "access.notWatchedHelp")}>{t(use.state === "unused" ? "access.notUsed" : "access.notWatched")}</span>
    );
  return (
    <span data-testid="last-use" data-value={use.state}>
      {to ? <Link to={to} aria-label={at === undefined ? label : undefined}>{text}</Link> : text}
    </span>
  );
}
