import { Button, Checkbox, Group, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { useMe } from "../api/queries";
import { useEndReview, useReview, useReviewLines } from "../api/reviews";
import type { AccessReview } from "../api/types";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { FormDialog } from "../components/FormDialog";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { CountFilter } from "../components/govern/CountFilter";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import { Progress, ReviewFacts, ReviewStateBadge } from "../components/reviews/parts";
import { ReviewLines } from "../components/reviews/ReviewLines";
import classes from "../components/reviews/Reviews.module.css";
import { SearchField } from "../components/SearchField";
import { textLimit } from "../lib/request";
import { outcomes, recommendations } from "../lib/reviews";
import { among, useFilters } from "../lib/use-filters";
import { useKeptDialog } from "../lib/use-kept-dialog";
import type { KeptInput } from "../lib/use-kept-dialog";
import { reviewLineOrders, useServerSort } from "../lib/use-server-sort";

interface EndForm {
  reason: string;
}

const isEndForm = (value: unknown): value is EndForm => typeof value === "object" && value !== null && "reason" in value && typeof value.reason === "string";

interface EndDialogProps {
  review: AccessReview;
  /** The values from before a login. */
  draft: EndForm | undefined;
  kept: KeptInput;
  onClose: () => void;
}

function EndDialog({ review, draft, kept, onClose }: EndDialogProps) {
  const { t } = useTranslation();
  const end = useEndReview(review.id);
  const [reason, setReason] = useState(draft?.reason ?? "");
  const [missing, setMissing] = useState(false);
  return (
    <FormDialog
      title={t("accessReview.endTitle", { name: review.name })}
      submit={{
        label: t("accessReview.endNow"), danger: true, testId: "end-review-confirm",
        onSubmit: () => {
          if (reason.trim() === "") {
            setMissing(true);
            return false;
          }
          end.mutate(reason.trim(), { onSuccess: onClose });
          return true;
        },
      }}
      pending={end.isPending}
      error={end.error}
      values={{ reason }}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("accessReview.endText")}</Text>
          <Textarea label={t("accessReview.endReason")} required autosize minRows={2} maxLength={textLimit} value={reason} onChange={(event) => setReason(event.currentTarget.value)} error={fieldError("reason") ?? (missing && reason.trim() === "" && t("accessReview.needReason"))} data-testid="end-review-reason" />
        </>
      )}
    </FormDialog>
  );
}

const states = ["open", "done"] as const;

function Lines({ review }: { review: AccessReview }) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const sees = canSeeGovernance(useMe().data);
  const mine = search.get("mine") === "true";
  const q = search.get("q")?.trim() ?? "";
  const all = search.get("every") === "true" || !review.deciding;
  const outcome = among(search.getAll("outcome"), outcomes);
  const recommendation = among(search.getAll("recommendation"), recommendations);
  const query = useReviewLines(review.id, {
    ...(q ? { q } : {}),
    ...(mine ? { mine } : {}),
    ...(outcome.length > 0 ? { outcome } : all ? {} : { state: [states[0]] }),
    ...(recommendation.length > 0 ? { recommendation } : {}),
    limit: 100,
    ...useServerSort(reviewLineOrders),
  });
  const filtered = q !== "" || recommendation.length > 0 || outcome.length > 0;
  return (
    <>
      <div className={classes.filters} role="search" aria-label={t("accessReview.filters")}>
        <SearchField size="xs" label={t("accessReview.search")} value={q} onChange={(next) => change({ q: next })} testId="lines-search" />
        {sees && <Checkbox size="sm" label={t("accessReview.mine")} checked={mine} onChange={(event) => change({ mine: event.currentTarget.checked ? "true" : undefined })} data-testid="lines-mine" />}
        {review.deciding && <Checkbox size="sm" label={t("accessReview.everyLine")} checked={all} onChange={(event) => change({ every: event.currentTarget.checked ? "true" : undefined })} data-testid="lines-every" />}
      </div>
      {review.counts.open > 0 && <CountFilter label={t("accessReview.column.recommendation")} values={recommendations} counts={review.counts.recommended} word={(each) => t(`accessReview.recommendation.${each}`)} chosen={recommendation} onChange={(next) => change({ recommendation: next })} testId="recommendation" />}
      <CountFilter label={t("accessReview.column.outcome")} values={outcomes} counts={Object.fromEntries(outcomes.map((each) => [each, review.counts[each]]))} word={(each) => t(`accessReview.count.${each}`)} chosen={outcome} onChange={(next) => change({ outcome: next })} testId="outcome" />
      <Loaded query={query}>
        {({ pages }) => {
          const lines = pages.flatMap(({ items }) => items);
          return lines.length > 0 ? (
            <ReviewLines review={review.id} lines={lines} query={query} orders={reviewLineOrders} />
          ) : (
            <EmptyState action={filtered && <Button variant="default" onClick={() => change({ q: undefined, recommendation: undefined, outcome: undefined })}>{t("action.clear")}</Button>}>
              {t(filtered || all ? "accessReview.noLines" : "accessReview.allDecided")}
            </EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}

/** ReviewPage shows one access review: its terms, its progress, and the lines to decide. */
export function ReviewPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const query = useReview(id);
  const ending = useKeptDialog(`end-review ${id}`, isEndForm);
  const review = query.data;
  return (
    <Page
      wide
      title={review?.name ?? id}
      heading={review && <span className={classes.heading}>{review.name} <ReviewStateBadge review={review} /></span>}
      crumbs={[{ to: "/reviews", label: t("accessReview.title") }, { label: id }]}
      actions={
        review && (
          <Group gap="sm">
            {review.canExport && review.state !== "preparing" && <Button component={Link} to={`/reviews/${id}/report`} variant="default" data-testid="review-report">{t("accessReview.report")}</Button>}
            {review.canEnd && <Button variant="default" onClick={ending.open} data-testid="end-review">{t("accessReview.end")}</Button>}
          </Group>
        )
      }
    >
      <Loaded query={query}>
        {(data) => (
          <>
            <ReviewFacts review={data} />
            {data.state === "preparing" ? (
              <Notice testId="preparing" live>{t(data.flowsUnreadable ? "accessReview.unreadable" : "accessReview.preparing")}</Notice>
            ) : (
              <>
                <div style={{ maxWidth: 420, marginBottom: 18 }}><Progress review={data} /></div>
                <Lines key={data.id} review={data} />
              </>
            )}
          </>
        )}
      </Loaded>
      {ending.opened && review?.canEnd && <EndDialog review={review} draft={ending.draft} kept={ending.kept} onClose={ending.close} />}
    </Page>
  );
}
