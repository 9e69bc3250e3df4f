import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { EmptyState } from "../components/Feedback";
import { Page } from "../components/Page";

/** What a broken page leaves: also when its code could not be loaded because a newer version was installed. */
export function RouteError() {
  const { t } = useTranslation();
  return (
    <Page title={t("error.title")}>
      <EmptyState action={<Button onClick={() => window.location.reload()}>{t("error.reload")}</Button>}>{t("error.crash")}</EmptyState>
    </Page>
  );
}
