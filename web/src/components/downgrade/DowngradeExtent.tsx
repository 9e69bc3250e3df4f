import { useTranslation } from "react-i18next";
import type { Downgrade } from "../../api/types";
import { useWords } from "../../lib/use-words";
import classes from "../govern/Govern.module.css";
import { Section } from "../Page";
import tables from "../Tables.module.css";

/** DowngradeExtent shows what a downgrade of this scope would open, and how long that takes. */
export function DowngradeExtent({ extent }: { extent: Downgrade }) {
  const { t } = useTranslation();
  const words = useWords();
  const seconds = Math.ceil(extent.seconds);
  const duration = t("downgrade.seconds", { count: seconds });
  return (
    <Section title={t("downgrade.extentTitle")} testId="extent">
      <dl className={classes.facts}>
        <div>
          <dt>{t("downgrade.enforced")}</dt>
          <dd data-testid="extent-enforced">{words.number(extent.enforced)}</dd>
        </div>
        <div>
          <dt>{t("downgrade.openNow")}</dt>
          <dd data-testid="extent-open">{words.number(extent.open)}</dd>
        </div>
        <div>
          <dt>{t("downgrade.wouldOpen")}</dt>
          <dd data-testid="extent-would">{words.number(extent.enforced - extent.open)}</dd>
        </div>
        <div>
          <dt>{t("downgrade.members")}</dt>
          <dd>{extent.members.length > 0 ? words.list(extent.members) : <span className={tables.muted}>{t("downgrade.noMember")}</span>}</dd>
        </div>
        {seconds > 0 && (
          <div>
            <dt>{t("downgrade.takes")}</dt>
            <dd>
              {duration} <span className={tables.muted}>{t("downgrade.viaKubeFed")}</span>
            </dd>
          </div>
        )}
      </dl>
    </Section>
  );
}
