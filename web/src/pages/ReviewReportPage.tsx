import { Button, Group } from "@mantine/core";
import { IconDownload, IconPrinter } from "@tabler/icons-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { useReview, useReviewLines } from "../api/reviews";
import type { AccessReview, ReviewLine } from "../api/types";
import { ErrorState, Loaded, Notice } from "../components/Feedback";
import { GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { LineState, RecommendationBadge, ReviewFacts, ReviewerRule, StatementText, Use } from "../components/reviews/parts";
import classes from "../components/reviews/Reviews.module.css";
import { DayAndTime } from "../components/Time";
import { outcomes } from "../lib/reviews";
import { useWords } from "../lib/use-words";

/** mostLines is the maximum number of lines that the page shows; the file has all of them. */
const mostLines = 2_000;

function Counts({ review }: { review: AccessReview }) {
  const { t } = useTranslation();
  return (
    <dl className={classes.facts} data-testid="report-counts">
      {(["open", "applying", ...outcomes] as const).filter((each) => review.counts[each] > 0).map((each) => (
        <div key={each}>
          <dt>{t(`accessReview.count.${each}`)}</dt>
          <dd className={classes.big}>{review.counts[each]}</dd>
        </div>
      ))}
      {review.counts.silent > 0 && (
        <div>
          <dt>{t("accessReview.silent")}</dt>
          <dd className={classes.big}>{review.counts.silent}</dd>
        </div>
      )}
    </dl>
  );
}

function Row({ line }: { line: ReviewLine }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <tr data-testid={`report-${line.line}`}>
      <td>{line.line}</td>
      <td>
        {line.scope ? <StatementText scope={line.scope} /> : <strong>{words.access(line)}</strong>}
        <div className={classes.muted}>{words.list(line.actions)} · {line.ticket}</div>
        <div className={classes.muted}>{t("accessReview.since")} <DayAndTime at={line.since} /> · {line.end ? <>{t("accessReview.until")} <DayAndTime at={line.end} /></> : t("accessReview.permanent")}</div>
      </td>
      <td><Use evidence={line.evidence} paper /></td>
      <td><RecommendationBadge recommendation={line.recommendation} /></td>
      <td>
        {line.reviewers.length > 0 ? words.names(line.reviewers.map(({ displayName }) => displayName)) : t("accessReview.nobody")}
        <div className={classes.muted}><ReviewerRule rule={line.rule} /></div>
      </td>
      <td><LineState line={line} paper /></td>
    </tr>
  );
}

function Report({ review }: { review: AccessReview }) {
  const { t } = useTranslation();
  const query = useReviewLines(review.id, { limit: 200 });
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = query;
  const read = query.data?.pages.reduce((sum, { items }) => sum + items.length, 0) ?? 0;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError && read < mostLines) void fetchNextPage();
  }, [fetchNextPage, hasNextPage, isFetchNextPageError, isFetchingNextPage, read]);
  return (
    <>
      {review.state !== "closed" && <div className={classes.above}><Notice testId="report-open">{t("accessReview.reportOpen")}</Notice></div>}
      <ReviewFacts review={review} />
      <Counts review={review} />
      <Loaded query={query}>
        {({ pages }) => (
          <table className={classes.report} data-testid="report">
            <thead>
              <tr>
                <th scope="col">#</th>
                <th scope="col">{t("accessReview.column.access")}</th>
                <th scope="col">{t("accessReview.column.use")}</th>
                <th scope="col">{t("accessReview.column.recommendation")}</th>
                <th scope="col">{t("accessReview.column.reviewers")}</th>
                <th scope="col">{t("accessReview.column.decision")}</th>
              </tr>
            </thead>
            <tbody>
              {pages.flatMap(({ items }) => items).map((line) => <Row key={line.line} line={line} />)}
            </tbody>
          </table>
        )}
      </Loaded>
      {isFetchNextPageError && <ErrorState error={query.error} title={t("error.moreTitle")} onRetry={() => void fetchNextPage()} />}
      {hasNextPage && read >= mostLines && <Notice>{t("accessReview.reportMore", { count: read })}</Notice>}
    </>
  );
}

/** ReviewReportPage is the report of an access review, for auditors: on the page, on paper, and as CSV. */
export function ReviewReportPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const query = useReview(id);
  const name = query.data?.name ?? id;
  return (
    <Page
      wide
      title={t("accessReview.reportTitle", { name })}
      sub={t("accessReview.reportIntro", { id })}
      crumbs={[{ to: "/reviews", label: t("accessReview.title") }, { to: `/reviews/${id}`, label: name }, { label: t("accessReview.report") }]}
      actions={
        <Group gap="sm" className={classes.noPrint ?? ""}>
          <Button component="a" href={`/api/v1/reviews/${encodeURIComponent(id)}/report`} download leftSection={<IconDownload size={16} aria-hidden />} variant="default" data-testid="report-csv">{t("accessReview.csv")}</Button>
          <Button leftSection={<IconPrinter size={16} aria-hidden />} variant="default" onClick={() => window.print()}>{t("accessReview.print")}</Button>
        </Group>
      }
    >
      <GovernanceOnly>
        <Loaded query={query}>{(review) => <Report key={review.id} review={review} />}</Loaded>
      </GovernanceOnly>
    </Page>
  );
}
