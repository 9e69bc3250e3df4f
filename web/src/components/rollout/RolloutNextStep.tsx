import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { isFinal } from "../../api/client";
import { useRolloutCard } from "../../api/flows";
import type { Resource, RolloutCard } from "../../api/types";
import { anchors, stages, verbOf } from "../../lib/rollout";
import { useWords } from "../../lib/use-words";
import { Loaded, RowsSkeleton } from "../Feedback";
import { Section } from "../Page";
import { RolloutDialogs } from "./RolloutDialogs";
import type { Doing } from "./RolloutDialogs";
import { Waves } from "./Waves";
import classes from "./Rollout.module.css";

/** Way shows the five stages in order and marks the current one. */
function Way({ card }: { card: RolloutCard }) {
  const { t } = useTranslation();
  return (
    <ol className={classes.way} aria-label={t("rollout.way")} data-testid="rollout-way">
      {stages.map((stage) => (
        <li key={stage} aria-current={stage === card.stage ? "step" : undefined} title={t(`rollout.stageHelp.${stage}`)} data-value={stage}>
          {t(`rollout.stage.${stage}`)}
        </li>
      ))}
    </ol>
  );
}

function NextStep({ card }: { card: RolloutCard }) {
  const { t } = useTranslation();
  const words = useWords();
  const [doing, setDoing] = useState<Doing>();
  const { hint } = card;
  const verb = verbOf(card);
  const anchor = anchors[hint?.code ?? ""];
  // A change that is already requested is not offered again.
  const asked = verb === "advance" && card.ticket !== undefined;
  return (
    <>
      <Way card={card} />
      <p className={classes.where}>{t(`rollout.stageHelp.${card.stage}`)}</p>
      <Waves card={card} />
      {hint && !asked && <p className={classes.hint} data-testid="next-hint" data-value={hint.code}>{words.message(hint.message)}</p>}
      {card.ticket && (
        <p className={classes.hint} data-testid="next-waits">
          {t("rollout.underWay")} <Link to={`/tickets/${card.ticket}`}>{card.ticket}</Link> · {t("rollout.thenNext")}
        </p>
      )}
      <Group gap={8} mt={10}>
        {verb && hint && !asked && (
          <Button size="xs" onClick={() => setDoing({ verb, cards: [card] })} data-testid={`next-${verb}`}>
            {t(`rollout.next.${hint.code}`)}
          </Button>
        )}
        {anchor && hint && (
          <Button size="xs" component="a" href={anchor} data-testid="next-look">
            {t(`rollout.next.${hint.code}`)}
          </Button>
        )}
      </Group>
      <RolloutDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  );
}

/** RolloutNextStep shows the rollout stage of a resource and the next step with its button. No step happens automatically. */
export function RolloutNextStep({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const query = useRolloutCard(resource.id);
  // The server refuses the next step to people who do not own the resource.
  if (!query.data && isFinal(query.error)) return null;
  return (
    <Section anchor="next-step" title={t("rollout.nextStep")} aside={<Link to={`/rollout?q=${encodeURIComponent(resource.id)}`}>{t("rollout.board")}</Link>} testId="next-step">
      <Loaded query={query} skeleton={<RowsSkeleton rows={2} />}>{(card) => <NextStep card={card} />}</Loaded>
    </Section>
  );
}
