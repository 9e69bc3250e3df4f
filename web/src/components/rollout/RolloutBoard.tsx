import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { RolloutCard } from "../../api/types";
import { cardKey } from "../../lib/rollout";
import { unfolded } from "../../lib/use-board";
import type { BoardColumn } from "../../lib/use-board";
import { useWords } from "../../lib/use-words";
import { ResourceCard } from "./ResourceCard";
import type { CardAction } from "./ResourceCard";
import classes from "./Rollout.module.css";

interface Props {
  columns: BoardColumn[];
  selection: ReadonlySet<string>;
  onSelect: (key: string) => void;
  onAct: (card: RolloutCard, action: CardAction) => void;
}

/** folded is the number of cards that a column shows at first, so that the next column is not far below on a narrow screen. */
const folded = 8;

interface ColumnProps extends Omit<Props, "columns"> {
  column: BoardColumn;
}

function Column({ column: { stage, cards, count, more }, selection, onSelect, onAct }: ColumnProps) {
  const { t } = useTranslation();
  const words = useWords();
  const [most, setMost] = useState(folded);
  const shown = cards.slice(0, most);
  const rest = Math.max(count, cards.length) - shown.length;
  const unfold = () => {
    setMost(most + unfolded);
    if (most + unfolded > cards.length) more?.fetch();
  };
  return (
    <section className={classes.column} aria-label={t(`rollout.stage.${stage}`)} data-testid={`column-${stage}`}>
      <div className={classes.columnHead}>
        <h2>{t(`rollout.stage.${stage}`)}</h2>
        <span>{words.number(count)}</span>
      </div>
      <p className={classes.columnHelp}>{t(`rollout.stageHelp.${stage}`)}</p>
      {cards.length === 0 ? (
        <p className={classes.none}>{t("rollout.columnEmpty")}</p>
      ) : (
        <ul className={classes.cards}>
          {shown.map((card) => (
            <ResourceCard key={cardKey(card)} card={card} selected={selection.has(cardKey(card))} onSelect={() => onSelect(cardKey(card))} onAct={(action) => onAct(card, action)} />
          ))}
        </ul>
      )}
      {(shown.length < cards.length || more) && (
        <Button mt={8} fullWidth size="compact-sm" variant="default" loading={more?.busy ?? false} onClick={unfold} data-testid={`column-more-${stage}`}>
          {t("rollout.showMore", { count: rest, number: words.number(rest) })}
        </Button>
      )}
    </section>
  );
}

/**
 * RolloutBoard shows a column for each stage; on a narrow screen the columns are below each other. Cards cannot be dragged: the stage follows from what
 * was done.
 */
export function RolloutBoard({ columns, ...rest }: Props) {
  const { t } = useTranslation();
  return (
    // A scrollable region must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={classes.board} tabIndex={0} role="region" aria-label={t("rollout.board")} data-testid="board">
      {columns.map((column) => (
        <Column key={column.stage} column={column} {...rest} />
      ))}
    </div>
  );
}
