import { useTranslation } from "react-i18next";
import type { WeeklyHours } from "../api/types";
import { hoursText } from "../lib/hours";
import tables from "./Tables.module.css";

/** Hours shows the hours to which access is restricted, or nothing if it is not restricted. */
export function Hours({ hours }: { hours: WeeklyHours | undefined }) {
  const { i18n } = useTranslation();
  return hours ? <span className={tables.muted} data-testid="hours">{hoursText(hours, i18n.language)}</span> : null;
}
