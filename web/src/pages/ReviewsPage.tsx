import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../api/queries";
import { useReviews } from "../api/reviews";
import type { AccessReview } from "../api/types";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import { Progress, ReviewStateBadge } from "../components/reviews/parts";
import { WaitingReviews } from "../components/reviews/WaitingReviews";
import { SavedViews } from "../components/SavedViews";
import tables from "../components/Tables.module.css";
import reviews from "../components/reviews/Reviews.module.css";
import { RelativeTime } from "../components/Time";
import { reviewsCSV } from "../lib/tables/reviews";
import { decidedOf } from "../lib/reviews";
import { instant } from "../lib/table-sort";
import { useFilters } from "../lib/use-filters";

/** ReviewsPage lists access reviews: all of them for the security team and auditors, for others those with lines of theirs. */
export function ReviewsPage() {
  const { t } = useTranslation();
  const me = useMe().data;
  const [search] = useFilters();
  const query = useReviews();
  const sees = canSeeGovernance(me);
  const mayCreate = me?.roles.includes("security") === true && !me.roles.includes("auditor");
  const begin = (
    <Button component={Link} to="/reviews/new" data-testid="new-review">
      {t("accessReview.new")}
    </Button>
  );
  const columns: Column<AccessReview>[] = [
    {
      key: "review", header: t("accessReview.column.review"), sortBy: (row) => row.name,
      cell: (row) => (
        <span className={tables.stack}>
          <Link className={tables.title} to={`/reviews/${row.id}`}>{row.name}</Link>
          <span className={tables.muted}>{row.id}</span>
        </span>
      ),
    },
    { key: "state", header: t("accessReview.column.state"), nowrap: true, cell: (row) => <ReviewStateBadge review={row} />, sortBy: (row) => row.state },
    { key: "progress", header: t("accessReview.column.progress"), cell: (row) => row.state !== "preparing" && <Progress review={row} />, sortBy: decidedOf },
    { key: "due", header: t("accessReview.column.due"), nowrap: true, cell: (row) => row.state !== "closed" && <RelativeTime at={row.deadline} />, sortBy: (row) => instant(row.deadline) },
    { key: "created", header: t("accessReview.column.created"), nowrap: true, cell: (row) => row.createdBy.displayName, sortBy: (row) => row.createdBy.displayName },
  ];
  return (
    <Page wide title={t("accessReview.title")} sub={t("accessReview.intro")} actions={<Group gap="sm"><SavedViews page="reviews" query={search.toString()} />{mayCreate && begin}</Group>}>
      <div className={reviews.above}><WaitingReviews /></div>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap(({ items }) => items);
          return rows.length > 0 ? (
            <DataTable query={query} csv={reviewsCSV} label={t("accessReview.title")} columns={columns} rows={rows} rowKey={({ id }) => id} rowTestId={({ id }) => `review-${id}`} testId="reviews" />
          ) : (
            <EmptyState action={mayCreate && begin}>{t(sees ? "accessReview.none" : "accessReview.noneMine")}</EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
