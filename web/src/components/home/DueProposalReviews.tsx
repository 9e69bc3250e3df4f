import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Home } from "../../api/types";
import { Section } from "../Page";
import { RelativeTime } from "../Time";
import classes from "./Home.module.css";

/** DueProposalReviews lists the reader's resources whose observed clients should have been reviewed again. It renders nothing if there is none. */
export function DueProposalReviews({ home }: { home: Home }) {
  const { t } = useTranslation();
  const due = home.proposalReviewsDue ?? [];
  if (due.length === 0) return null;
  return (
    <Section title={t("home.reviewsDue")} count={due.length} testId="proposal-reviews-due">
      <ul className={classes.cards}>
        {due.map(({ resource, nextReview }) => (
          <li key={resource.name}>
            <Link className={classes.step} to={`/resources/${encodeURIComponent(resource.id ?? resource.name)}#proposal`}>
              <strong>{resource.title}</strong>
              <span className={classes.muted}>
                {t("home.reviewDue")} <RelativeTime at={nextReview} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Section>
  );
}
