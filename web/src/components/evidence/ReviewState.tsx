import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Proposal, Resource } from "../../api/types";
import { ToneBadge } from "../Badge";
import { PersonName } from "../Names";
import tables from "../Tables.module.css";
import { DayAndTime, RelativeTime } from "../Time";
import classes from "./Evidence.module.css";
import { ReviewedDialog } from "./ReviewedDialog";

/** ReviewState shows who reviewed the observed clients last and when the next review is planned, with the button that records a review. */
export function ReviewState({ resource, proposal }: { resource: Resource; proposal: Proposal }) {
  const { t } = useTranslation();
  // The end of the flows that were shown when the dialog was opened. Clients that a later read adds were not reviewed.
  const [until, setUntil] = useState<string>();
  const { review } = proposal;
  return (
    <div className={classes.review} data-testid="proposal-review">
      <span className={tables.sentence}>
        {review ? (
          <>
            {t("proposal.review.done")} <RelativeTime at={review.at} /> <PersonName person={review.by} />
          </>
        ) : (
          t("proposal.review.never")
        )}
        {review?.nextReview && (
          <>
            {" · "}
            {t("proposal.review.next")} <DayAndTime at={review.nextReview} />{" "}
            {review.due && <ToneBadge tone="warn" word={t("proposal.review.due")} testId="review-due" />}
          </>
        )}
      </span>
      {proposal.canAdopt && (
        <Button size="compact-sm" variant="default" onClick={() => setUntil(proposal.until)} data-testid="mark-reviewed">
          {t("proposal.review.mark")}
        </Button>
      )}
      {until !== undefined && <ReviewedDialog resource={resource} until={until} onClose={() => setUntil(undefined)} />}
    </div>
  );
}
