import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link, Navigate, useParams } from "react-router";
import { asApiError } from "../api/client";
import { useSharedView } from "../api/saved-views";
import { EmptyState, Loaded } from "../components/Feedback";
import { Page } from "../components/Page";
import { pathOf, sharedState } from "../lib/saved-views";
import { useWords } from "../lib/use-words";

/** SharedViewPage opens the page of a view that somebody shares, with its filters, or says why it cannot be opened. */
export function SharedViewPage() {
  const { t } = useTranslation();
  const words = useWords();
  const { link = "" } = useParams();
  const view = useSharedView(link);
  if (view.data) return <Navigate to={pathOf(view.data)} state={sharedState(link)} replace />;
  const { code, problem } = asApiError(view.error);
  return (
    <Page title={t("requests.saved.shared")}>
      {view.error && code === "not-found" ? (
        <EmptyState
          testId="shared-view-missing"
          action={
            <Button component={Link} to="/" variant="default">
              {t("action.backHome")}
            </Button>
          }
        >
          {problem ? words.message(problem.message) : t("error.notFoundText")}
        </EmptyState>
      ) : (
        <Loaded query={view}>{() => null}</Loaded>
      )}
    </Page>
  );
}
