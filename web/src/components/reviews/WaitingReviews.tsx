import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMyReviewLines } from "../../api/reviews";
import type { ReviewLine } from "../../api/types";
import { useWords } from "../../lib/use-words";
import { Notice } from "../Feedback";
import { MoreEntries } from "../home/MoreEntries";
import { Section } from "../Page";
import { RelativeTime } from "../Time";
import classes from "./Reviews.module.css";

/** byReview groups the lines by their review, in the order of the list. */
function byReview(lines: ReviewLine[]) {
  const all = new Map<string, ReviewLine[]>();
  for (const line of lines) all.set(line.review, [...(all.get(line.review) ?? []), line]);
  return [...all.values()];
}

/** WaitingReviews lists the access reviews that wait for the reader. It renders nothing if there is none. */
export function WaitingReviews() {
  const { t } = useTranslation();
  const words = useWords();
  const { data } = useMyReviewLines();
  if (!data || data.items.length === 0) return null;
  const groups = byReview(data.items);
  const complete = (data.total ?? 0) <= data.items.length;
  return (
    <Section title={t("accessReview.waitingTitle")} count={data.total} aside={<Link to="/reviews">{t("accessReview.title")}</Link>} testId="waiting-reviews">
      <ul className={classes.list}>
        {groups.map((lines, index) => {
          const [first] = lines;
          if (!first) return null;
          // The lines come by review, so that only those of the last one may not all be there.
          const all = complete || index < groups.length - 1;
          const accesses = lines.map((line) => words.access(line));
          return (
            <li key={first.review}>
              <Link className={classes.card} to={`/reviews/${first.review}?mine=true`} data-testid={`waits-${first.review}`}>
                <strong>{first.reviewName}</strong>
                <span className={classes.muted}>
                  {all ? words.names(accesses, 2) : `${words.names(accesses.slice(0, 2))} …`} · {t("accessReview.waitingDue")} <RelativeTime at={first.deadline} />
                </span>
              </Link>
            </li>
          );
        })}
      </ul>
      <MoreEntries of="accesses" count={data.total} shown={data.items.length} to="/reviews" testId="waiting-reviews-more" />
    </Section>
  );
}

/** WaitingReviewsNotice links the access reviews that wait for the reader, beside other decisions. */
export function WaitingReviewsNotice() {
  const { t } = useTranslation();
  const { data } = useMyReviewLines();
  const first = data?.items[0];
  if (!data || !first) return null;
  const one = data.items.every(({ review }) => review === first.review);
  return (
    <Notice testId="waiting-reviews-notice">
      <Link to={one ? `/reviews/${first.review}?mine=true` : "/reviews"}>{t("accessReview.waiting", { count: data.total ?? data.items.length })}</Link>
    </Notice>
  );
}
