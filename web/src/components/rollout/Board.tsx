import { useTranslation } from "react-i18next";
import type { RolloutCard } from "../../api/types";
import { cardKey, columns, stages } from "../../lib/rollout";
import { Card } from "./Card";
import type { CardAction } from "./Card";
import classes from "./Rollout.module.css";

interface Props {
  cards: RolloutCard[];
  /** Stage -> resources in it, the ones that are not loaded yet included. */
  counts: Record<string, number>;
  shown: readonly string[];
  selection: ReadonlySet<string>;
  onSelect: (key: string) => void;
  onAct: (card: RolloutCard, action: CardAction) => void;
}

/** Five columns, or on a narrow screen five lists below each other; a card moves by what is done, never by hand. */
export function Board({ cards, counts, shown, selection, onSelect, onAct }: Props) {
  const { t } = useTranslation();
  const byStage = columns(cards);
  return (
    // A scrollable region must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={classes.board} tabIndex={0} role="region" aria-label={t("rollout.board")} data-testid="board">
      {stages
        .filter((stage) => shown.length === 0 || shown.includes(stage))
        .map((stage) => (
          <section key={stage} className={classes.column} aria-label={t(`rollout.stage.${stage}`)} data-testid={`column-${stage}`}>
            <div className={classes.columnHead}>
              <h2>{t(`rollout.stage.${stage}`)}</h2>
              <span>{counts[stage] ?? byStage[stage].length}</span>
            </div>
            <p className={classes.columnHelp}>{t(`rollout.stageHelp.${stage}`)}</p>
            {byStage[stage].length === 0 ? (
              <p className={classes.none}>{t("rollout.columnEmpty")}</p>
            ) : (
              <ul className={classes.cards}>
                {byStage[stage].map((card) => (
                  <Card key={cardKey(card)} card={card} selected={selection.has(cardKey(card))} onSelect={() => onSelect(cardKey(card))} onAct={(action) => onAct(card, action)} />
                ))}
              </ul>
            )}
          </section>
        ))}
    </div>
  );
}
