import { Button } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { notSent } from "../../api/flow-mutations";
import type { RolloutCard, RolloutResult } from "../../api/types";
import { useWords } from "../../lib/use-words";
import approvals from "../approvals/Approvals.module.css";
import { InfoDialog } from "../InfoDialog";

interface Props {
  results: RolloutResult[];
  cards: RolloutCard[];
  onClose: () => void;
}

/** RolloutResults shows the result of each resource. */
export function RolloutResults({ results, cards, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const [only, ...more] = results;
  const single = more.length === 0 ? only : undefined;
  return (
    <InfoDialog
      title={single ? t(single.ok ? "approvals.done" : "approvals.refused") : t("approvals.resultTitle")}
      size="lg"
      onClose={onClose}
      actions={
        <>
          <Button variant="default" onClick={onClose} data-testid="results-close">
            {t("action.close")}
          </Button>
          {single?.ticket && (
            <Button component={Link} to={`/tickets/${single.ticket}`} data-testid="results-open">
              {t("rollout.open", { ticket: single.ticket })}
            </Button>
          )}
        </>
      }
    >
      <ul className={approvals.summary} data-testid="rollout-results">
        {results.map((each) => {
          const Icon = each.ok ? IconCheck : IconX;
          return (
            <li key={each.resource} className={approvals.result} data-testid={`result-${each.resource}`} data-value={each.ok ? "ok" : "refused"}>
              <Icon size={15} className={each.ok ? approvals.ok : approvals.bad} aria-label={t(each.ok ? "approvals.done" : "approvals.refused")} />
              <span>
                {cards.find(({ resource }) => resource.id === each.resource)?.resource.title ?? each.resource} {each.ticket && <Link to={`/tickets/${each.ticket}`}>{each.ticket}</Link>}
                {each.ticket && <small>{t("rollout.requested")}</small>}
                {each.recipients !== undefined && <small>{t("rollout.notified", { count: each.recipients })}</small>}
                {each.unowned && each.unowned.length > 0 && <small>{t("rollout.unowned", { names: words.list(each.unowned) })}</small>}
                {each.problem && <small>{each.problem.code === notSent ? t("rollout.notSent") : words.message(each.problem.message)}</small>}
              </span>
            </li>
          );
        })}
      </ul>
    </InfoDialog>
  );
}
