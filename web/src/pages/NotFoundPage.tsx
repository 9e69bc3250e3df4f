import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { EmptyState } from "../components/Feedback";
import { Page } from "../components/Page";

/** NotFoundPage is shown for an address without a page. */
export function NotFoundPage() {
  const { t } = useTranslation();
  return (
    <Page title={t("error.notFoundTitle")}>
      <EmptyState
        action={
          <Button component={Link} to="/" variant="default">
            {t("action.backHome")}
          </Button>
        }
      >
        {t("error.notFoundText")}
      </EmptyState>
    </Page>
  );
}
