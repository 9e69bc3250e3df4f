import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useRouteError } from "react-router";
import { EmptyState } from "../components/Feedback";
import { Page } from "../components/Page";
import { PageLoadError } from "../lib/page-load";
import { useRecovery } from "../lib/use-recovery";

interface Props {
  reload?: () => void;
}

const reloadDocument = () => window.location.reload();

function Broken({ reload }: Required<Props>) {
  const { t } = useTranslation();
  return (
    <Page title={t("error.title")}>
      <EmptyState action={<Button onClick={reload}>{t("error.reload")}</Button>} testId="page-broken">{t("error.crash")}</EmptyState>
    </Page>
  );
}

/** Unreached is shown when the code of a page could not be loaded. The page opens as soon as it can be loaded. */
function Unreached({ reload }: Required<Props>) {
  const { t } = useTranslation();
  const { state, tryNow } = useRecovery(reload);
  if (state === "gone") return <Broken reload={reload} />;
  return (
    <Page title={t("error.unreachableTitle")}>
      <div role="status">
        <EmptyState action={<Button variant="default" onClick={tryNow}>{t("error.tryNow")}</Button>} testId="portal-unreachable">{t("error.unreachable")}</EmptyState>
      </div>
    </Page>
  );
}

/** RouteError is shown in place of a page that failed. */
export function RouteError({ reload = reloadDocument }: Props) {
  return useRouteError() instanceof PageLoadError ? <Unreached reload={reload} /> : <Broken reload={reload} />;
}
