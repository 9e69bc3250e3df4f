import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useRollout } from "../../api/flows";
import type { RolloutCard } from "../../api/types";
import { cardKey, columns } from "../../lib/rollout";
import { useWords } from "../../lib/use-words";
import { EmptyState, RowsSkeleton } from "../Feedback";
import { Section } from "../Page";
import classes from "./Home.module.css";

const shown = 4;
const stages = ["initial", "refine", "announced"] as const;
const path = `/rollout?${stages.map((stage) => `stage=${stage}`).join("&")}`;

function Next({ card }: { card: RolloutCard }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <li>
      <Link className={classes.step} to={`/resources/${encodeURIComponent(card.resource.id ?? card.resource.name)}`} data-testid={`closing-${cardKey(card)}`}>
        <strong>{card.resource.title}</strong>
        <span className={classes.muted}>{t(`rollout.stage.${card.stage}`)}</span>
        {card.hint && <p>{words.message(card.hint.message)}</p>}
      </Link>
    </li>
  );
}

/** NextRolloutSteps lists the reader's resources in Audit with their next step, the most advanced first. If there is none, it shows where to begin. */
export function NextRolloutSteps() {
  const { t } = useTranslation();
  const words = useWords();
  const query = useRollout({ stage: [...stages], sort: "-stage" }, { limit: shown });
  const first = query.data?.pages[0];
  const title = t("home.closing");
  const aside = <Link to="/rollout">{t("governing.rollout")}</Link>;
  // The placeholder is as high as the cards, so that the sections below do not move when the cards are loaded.
  if (query.isPending) return <Section title={title} aside={aside}><RowsSkeleton rows={2} /></Section>;
  if (!first) return null;
  const { announced, refine, initial } = columns(first.items);
  const cards = [...announced, ...refine, ...initial];
  const more = Math.max(cards.length, stages.reduce((sum, stage) => sum + (first.stages[stage] ?? 0), 0)) - shown;
  const watched = first.stages.observe ?? 0;
  if (cards.length === 0 && watched === 0) return null;
  return (
    <Section title={title} aside={aside} testId="closing">
      {cards.length > 0 ? (
        <>
          <ul className={classes.cards}>
            {cards.slice(0, shown).map((card) => (
              <Next key={cardKey(card)} card={card} />
            ))}
          </ul>
          {more > 0 && (
            <p data-testid="closing-more">
              <Link to={path}>{t("home.closingMore", { count: more, number: words.number(more) })}</Link>
            </p>
          )}
        </>
      ) : (
        <EmptyState>{t("home.closingBegin", { count: watched, number: words.number(watched) })}</EmptyState>
      )}
    </Section>
  );
}
