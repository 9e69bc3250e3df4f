import { IconCheck, IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { Step, Vote } from "../api/types";
import { votesOf } from "../lib/items";
import { openSteps } from "../lib/step-rules";
import { useWords } from "../lib/use-words";
import { Comment } from "./Comment";
import { PersonName } from "./Names";
import { People } from "./People";
import { SharedStepRules, StepRules } from "./StepRules";
import classes from "./Timeline.module.css";
import { RelativeTime } from "./Time";

function VoteLine({ vote, plain }: { vote: Vote; plain: boolean }) {
  const { t } = useTranslation();
  const Icon = vote.approve ? IconCheck : IconX;
  return (
    <li data-testid={`vote-${vote.person.id}`} data-value={vote.approve ? "approve" : "reject"}>
      <div className={classes.who}>
        <PersonName person={vote.person} />
        {vote.onBehalfOf && <span className={classes.label}>{t("timeline.onBehalfOf", { name: vote.onBehalfOf.displayName })}</span>}
        {vote.through && <span className={classes.label}>{t("timeline.through", { channel: vote.through === "slack" ? "Slack" : vote.through.replace(/^webhook:/, "") })}</span>}
        {!plain && (
          <>
            <span className={vote.approve ? classes.for : classes.against}>
              <Icon size={13} stroke={2.4} aria-hidden />
              {t(vote.approve ? "timeline.votedFor" : "timeline.votedAgainst")}
            </span>
            <span className={classes.when}>
              <RelativeTime at={vote.at} />
            </span>
          </>
        )}
      </div>
      {vote.comment && <Comment text={vote.comment} />}
    </li>
  );
}

interface Props {
  step: Step;
  /** The approval chain of the step. */
  chain: Step[];
  votes: Vote[];
  open: boolean;
  decided: boolean;
}

/** StepVotes shows who voted in a step and how, and who can still vote. The outcome of a single vote is already in the step’s title. What applies to all open steps is shown at the last of them. */
export function StepVotes({ step, chain, votes, open, decided }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const { has, needs } = votesOf(step);
  const total = step.approversTotal ?? step.approvers.length;
  const voted = new Set(votes.flatMap((vote) => [vote.person.id, vote.onBehalfOf?.id]));
  const can = open ? step.approvers.filter((person) => !voted.has(person.id)) : [];
  return (
    <>
      {needs > 1 && step.approvers.length > 0 && <p className={classes.note} data-testid="step-quorum">{t("timeline.quorum", { has, needs, of: total })}</p>}
      {votes.length > 0 && (
        <ul className={classes.votes}>
          {votes.map((vote) => (
            <VoteLine key={`${vote.person.id}-${vote.at}`} vote={vote} plain={decided && votes.length === 1} />
          ))}
        </ul>
      )}
      {can.length > 0 && (
        <div className={classes.who}>
          <span className={classes.label}>{t(step.onCall && !step.onCall.fallback ? "timeline.approvers" : "timeline.canDecide")}</span>
          <People people={can} total={total - (step.approvers.length - can.length)} />
        </div>
      )}
      {step.auto && <p className={classes.note}>{t("timeline.auto")}</p>}
      {step.note && <p className={classes.note}>{words.message(step.note)}</p>}
      {open && step.escalated && <p className={classes.note}>{t("timeline.escalatedNow")}</p>}
      {open && <StepRules step={step} chain={chain} />}
      {open && step.name === openSteps(chain).at(-1)?.name && <SharedStepRules chain={chain} />}
    </>
  );
}
