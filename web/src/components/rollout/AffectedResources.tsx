import { useTranslation } from "react-i18next";
import type { RolloutCard } from "../../api/types";
import { cardKey } from "../../lib/rollout";
import { Notice } from "../Feedback";
import classes from "./Rollout.module.css";

/** AffectedResources names the resources that are affected, and the selected ones that are not. */
export function AffectedResources({ able, others }: { able: RolloutCard[]; others: RolloutCard[] }) {
  const { t } = useTranslation();
  return (
    <>
      <ul className={classes.affected} data-testid="affected">
        {able.map((card) => (
          <li key={cardKey(card)}>
            {card.resource.title} <small>{t(`rollout.stage.${card.stage}`)}</small>
          </li>
        ))}
      </ul>
      {others.length > 0 && <Notice>{t("rollout.notYours", { count: others.length })}</Notice>}
    </>
  );
}
