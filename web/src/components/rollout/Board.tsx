import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { RolloutCard, RolloutStage } from "../../api/types";
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

/** More of a column is shown on demand: the next one should not be far below on a narrow screen. */
const folded = 8;

interface ColumnProps extends Pick<Props, "cards" | "selection" | "onSelect" | "onAct"> {
  stage: RolloutStage;
  count: number;
}

function Column({ stage, cards, count, selection, onSelect, onAct }: ColumnProps) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  const shown = all ? cards : cards.slice(0, folded);
  return (
    <section className={classes.column} aria-label={t(`rollout.stage.${stage}`)} data-testid={`column-${stage}`}>
      <div className={classes.columnHead}>
        <h2>{t(`rollout.stage.${stage}`)}</h2>
        <span>{count}</span>
      </div>
      <p className={classes.columnHelp}>{t(`rollout.stageHelp.${stage}`)}</p>
      {cards.length === 0 ? (
        <p className={classes.none}>{t("rollout.columnEmpty")}</p>
      ) : (
        <ul className={classes.cards}>
          {shown.map((card) => (
            <Card key={cardKey(card)} card={card} selected={selection.has(cardKey(card))} onSelect={() => onSelect(cardKey(card))} onAct={(action) => onAct(card, action)} />
          ))}
        </ul>
      )}
      {shown.length < cards.length && (
        <Button mt={8} fullWidth size="compact-sm" variant="default" onClick={() => setAll(true)} data-testid={`column-more-${stage}`}>
          {t("rollout.showMore", { count: cards.length - shown.length })}
        </Button>
      )}
    </section>
  );
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
          <Column key={stage} stage={stage} cards={byStage[stage]} count={counts[stage] ?? byStage[stage].length} selection={selection} onSelect={onSelect} onAct={onAct} />
        ))}
    </div>
  );
}
