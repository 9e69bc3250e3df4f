import { Fragment } from "react";
import { Trans, useTranslation } from "react-i18next";
import { useGroup } from "../../api/queries";
import type { AccessReview, ReviewEvidence, ReviewLine, ReviewRecommendation, StatementScope } from "../../api/types";
import { decidedOf } from "../../lib/reviews";
import { secondsPerDay } from "../../lib/time";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import { RefName } from "../Names";
import { scopeElements } from "../scope-elements";
import { DayAndTime, RelativeTime } from "../Time";
import classes from "./Reviews.module.css";

const recommendationTones = { keep: "ok", shorten: "warn", revoke: "bad", none: "idle" } as const satisfies Record<ReviewRecommendation, string>;
const outcomeTones = { kept: "ok", shortened: "warn", revoked: "bad", ended: "idle", skipped: "idle" } as const;

/** RecommendationBadge shows the recommendation for a line of an access review, with an explanation on hover. */
export function RecommendationBadge({ recommendation }: { recommendation: ReviewRecommendation }) {
  const { t } = useTranslation();
  return <ToneBadge tone={recommendationTones[recommendation]} word={t(`accessReview.recommendation.${recommendation}`)} help={t(`accessReview.recommendationHelp.${recommendation}`)} value={recommendation} testId="recommendation" />;
}

/** ReviewStateBadge shows the state of an access review. */
export function ReviewStateBadge({ review }: { review: AccessReview }) {
  const { t } = useTranslation();
  const word = review.state === "open" && !review.deciding ? t(review.endedAt ? "accessReview.stateEnding" : "accessReview.stateDue") : t(`accessReview.state.${review.state}`);
  return <ToneBadge tone={review.state === "closed" ? "idle" : "busy"} word={word} value={review.state} testId="review-state" />;
}

/** LineState shows what was decided about a line, by whom, and what became of it. On paper, times are exact. */
export function LineState({ line, paper = false }: { line: ReviewLine; paper?: boolean }) {
  const { t } = useTranslation();
  const by = line.silent ? t("accessReview.silent") : line.decidedBy?.displayName;
  return (
    <span className={classes.access} data-testid="line-state" data-value={line.outcome ?? line.state}>
      <span className={classes.badges}>
        {line.outcome ? <ToneBadge tone={outcomeTones[line.outcome]} word={t(`accessReview.outcome.${line.outcome}`)} value={line.outcome} /> : <ToneBadge tone={line.state === "open" ? "idle" : "busy"} word={line.state === "open" ? t("accessReview.lineState.open") : `${t(`accessReview.lineState.${line.state}`)}${line.decision ? `: ${t(`accessReview.decided.${line.decision}`)}` : ""}`} value={line.state} />}
      </span>
      {by && (
        <span className={classes.muted}>
          {by}
          {line.onBehalfOf && ` (${line.onBehalfOf.displayName})`}
          {line.decidedAt && <>, {paper ? <DayAndTime at={line.decidedAt} /> : <RelativeTime at={line.decidedAt} />}</>}
        </span>
      )}
      {line.until && line.outcome !== "ended" && (
        <span className={classes.muted}>
          {t("accessReview.newEnd")} <DayAndTime at={line.until} />
        </span>
      )}
      {line.comment && <span className={classes.muted}>{line.comment}</span>}
    </span>
  );
}

/** Use shows the observed use of an access, and how far it can be relied on. On paper, times are exact. */
export function Use({ evidence, paper = false }: { evidence: ReviewEvidence; paper?: boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  const { at, lastUsed, count, days, refused, uncertain, watched, watchedPercent, lostPercent, member } = evidence;
  if (!at) return <span className={classes.muted}>{t("accessReview.useUnknown")}</span>;
  return (
    <span className={classes.use} data-testid="use">
      {lastUsed ? (
        <span>
          {t("accessReview.lastUsed")} {paper ? <DayAndTime at={lastUsed} /> : <RelativeTime at={lastUsed} />}
          {count > 0 && <span className={classes.muted}> · {t("accessReview.connections", { count, number: words.number(count) })}</span>}
        </span>
      ) : (
        <span>{t(watched && !uncertain ? "accessReview.neverIn" : "accessReview.notSeenIn", { count: days })}</span>
      )}
      {refused && <span className={classes.muted}>{t("accessReview.refusedUse")}</span>}
      {uncertain && <span className={classes.muted}>{t("accessReview.uncertainUse")}</span>}
      {/* How well a member was watched is known of whole days only. */}
      {!watched && <span className={classes.muted} data-testid="use-not-watched">{member ? t("accessReview.watched", { watched: watchedPercent ?? 0, lost: lostPercent ?? 0, member }) : t(days <= 1 ? "accessReview.watchedYoung" : "accessReview.watchedUnknown")}</span>}
    </span>
  );
}

/** shownNames is the number of subjects, and of resources, that the list of lines shows of a statement. */
const shownNames = 5;

/** StatementText says in words what a statement allows, as its ticket does. With `limit`, it counts the names beyond the first ones. */
export function StatementText({ scope, limit }: { scope: StatementScope; limit?: number }) {
  return <span className={classes.names} data-testid="statement"><Trans i18nKey="accessReview.statement" components={scopeElements(scope, limit)} /></span>;
}

/** LineAccess shows the access that a line of a review is about. */
export function LineAccess({ line }: { line: ReviewLine }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <span className={classes.access}>
      {line.scope && <StatementText scope={line.scope} limit={shownNames} />}
      {line.application && line.resource && (
        <span className={classes.ends}>
          <RefName kind="applications" about={line.application} />
          <span className={classes.arrow} aria-hidden>→</span>
          <RefName kind="resources" about={line.resource} />
        </span>
      )}
      <span className={classes.muted}>
        {words.list(line.actions)} · {line.scope && `${line.ticket} · `}{t("accessReview.since")} <RelativeTime at={line.since} /> · {line.end ? <>{t("accessReview.until")} <DayAndTime at={line.end} /></> : t("accessReview.permanent")}
      </span>
      {line.changedAt && <span className={classes.muted}>{t("accessReview.changed")}</span>}
    </span>
  );
}

/** Progress shows how many lines have which outcome; the bar is described by the text. */
export function Progress({ review }: { review: AccessReview }) {
  const { t } = useTranslation();
  const { total, kept, shortened, revoked, ended, skipped, applying } = review.counts;
  const parts = [[kept, classes.ok], [shortened, classes.warn], [revoked, classes.bad], [applying, classes.busy], [ended + skipped, classes.idle]] as const;
  return (
    <div className={classes.progress} data-testid="progress">
      <span>{t("accessReview.progress", { done: decidedOf(review), total })}</span>
      <div className={classes.bar} aria-hidden>
        {total > 0 && parts.map(([count, tone]) => count > 0 && <span key={tone} className={tone} style={{ width: `${(100 * count) / total}%` }} />)}
      </div>
    </div>
  );
}

const knownRules = ["resource-owner", "application-leader"] as const;

/** groupOf returns the id of the group that a rule names. */
const groupOf = (rule: string) => rule.replace(/^group:/, "");

/** useRule returns the words for a rule that names reviewers. A group is named by its id. */
export function useRule() {
  const { t } = useTranslation();
  return (rule: string) => {
    const known = knownRules.find((each) => each === rule);
    return known ? t(`accessReview.rule.${known}`) : t("accessReview.rule.group", { group: groupOf(rule) });
  };
}

/** GroupRule names a group as the catalog does, with its id on hover. A group that was not read (yet), or that the catalog does not have any more, is named by its id. */
function GroupRule({ group }: { group: string }) {
  const { t } = useTranslation();
  const found = useGroup(group).data;
  return <span title={group}>{t("accessReview.rule.group", { group: found?.displayName ?? group })}</span>;
}

/** ReviewerRule shows a rule that names reviewers. */
export function ReviewerRule({ rule }: { rule: string }) {
  const words = useRule();
  return knownRules.some((each) => each === rule) ? words(rule) : <GroupRule group={groupOf(rule)} />;
}

/** useScope describes which accesses a review is about. */
function useScope() {
  const { t } = useTranslation();
  const words = useWords();
  return ({ scope }: AccessReview) => {
    const parts = [
      ...(scope.classes ? [words.list(scope.classes)] : []),
      ...(scope.teams ? [words.list(scope.teams)] : []),
      ...(scope.sensitivities ? [words.list(scope.sensitivities.map((each) => t(`sensitivity.${each}`)))] : []),
      ...(scope.olderThanDays ? [t("accessReview.scopeOlder", { duration: words.duration(scope.olderThanDays * secondsPerDay) })] : []),
    ];
    return parts.length > 0 ? parts.join(" · ") : t("accessReview.everything");
  };
}

/** ReviewFacts shows the settings of an access review. */
export function ReviewFacts({ review }: { review: AccessReview }) {
  const { t } = useTranslation();
  const words = useWords();
  const scope = useScope();
  return (
    <dl className={classes.facts}>
      {review.state !== "closed" && (
        <div>
          <dt>{t(review.deciding || review.state === "preparing" ? "accessReview.due" : "accessReview.wasDue")}</dt>
          <dd>
            <DayAndTime at={review.deadline} /> (<RelativeTime at={review.deadline} />)
          </dd>
        </div>
      )}
      <div>
        <dt>{t("accessReview.facts.silence")}</dt>
        <dd>{t(`accessReview.silenceWas.${review.silence}`, { duration: words.duration((review.graceDays ?? 0) * secondsPerDay) })}</dd>
      </div>
      <div>
        <dt>{t("accessReview.facts.scope")}</dt>
        <dd>{scope(review)}</dd>
      </div>
      <div>
        <dt>{t("accessReview.facts.reviewers")}</dt>
        <dd>
          {review.reviewers.map((rule, at) => (
            <Fragment key={rule}>
              {at > 0 && " · "}
              <ReviewerRule rule={rule} />
            </Fragment>
          ))}
        </dd>
      </div>
      <div>
        <dt>{t("accessReview.facts.window")}</dt>
        <dd>{t("accessReview.windowOf", { duration: words.duration(review.windowDays * secondsPerDay) })}</dd>
      </div>
      <div>
        <dt>{t("accessReview.facts.by")}</dt>
        <dd>
          {review.createdBy.displayName}, <RelativeTime at={review.createdAt} />
        </dd>
      </div>
      {review.nextReminder && (
        <div>
          <dt>{t("accessReview.facts.reminder")}</dt>
          <dd><RelativeTime at={review.nextReminder} /></dd>
        </div>
      )}
      {(review.endedBy ?? review.endMessage) && (
        <div>
          <dt>{t("accessReview.facts.ended")}</dt>
          <dd>{review.endedBy ? `${review.endedBy.displayName}: ${review.endReason ?? ""}` : review.endMessage && words.message(review.endMessage)}</dd>
        </div>
      )}
      {review.closedAt && (
        <div>
          <dt>{t("accessReview.facts.closed")}</dt>
          <dd><DayAndTime at={review.closedAt} /></dd>
        </div>
      )}
    </dl>
  );
}
