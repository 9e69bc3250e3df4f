import { useTranslation } from "react-i18next";
import type { LiveState } from "../api/live-context";
import type { Me } from "../api/types";
import { Notice } from "../components/Feedback";
import { DayAndTime } from "../components/Time";
import classes from "./Shell.module.css";

/** Notices reports that live updates are interrupted, or that the host cluster does not answer. */
export function Notices({ live, me }: { live: LiveState; me: Me | undefined }) {
  const { t } = useTranslation();
  if (live === "lost") {
    return (
      <div className={classes.lost}>
        <Notice live testId="live-lost">{t("live.lost")}</Notice>
      </div>
    );
  }
  if (!me?.hostUnavailableSince) return null;
  return (
    <div className={classes.lost}>
      <Notice live testId="host-away">
        {t("live.hostAway")} <DayAndTime at={me.hostUnavailableSince} />
      </Notice>
    </div>
  );
}
