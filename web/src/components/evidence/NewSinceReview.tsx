import { useTranslation } from "react-i18next";
import { ToneBadge } from "../Badge";

/** NewSinceReview marks a line that is new since the last review. It renders nothing for others, and without a review. */
export function NewSinceReview({ is }: { is: boolean | undefined }) {
  const { t } = useTranslation();
  if (!is) return null;
  return (
    <span>
      <ToneBadge tone="warn" word={t("proposal.review.new")} help={t("proposal.review.newHelp")} testId="new-since-review" />
    </span>
  );
}
