import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useRetryUndelivered, useUndelivered } from "../api/account";
import { useMe } from "../api/queries";
import { ConfirmDialog } from "../components/ConfirmDialog";
import { EmptyState, ErrorState, Loaded } from "../components/Feedback";
import { UndeliveredTable } from "../components/inbox/UndeliveredTable";
import { LoadMore } from "../components/LoadMore";
import { canManageGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { useToast } from "../components/toast-context";

function RetryAll({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const retry = useRetryUndelivered();
  return (
    <ConfirmDialog
      title={t("undelivered.retryTitle")}
      text={t("undelivered.retryText")}
      confirm={t("undelivered.retryAll")}
      pending={retry.isPending}
      error={retry.error}
      testId="retry-all"
      onConfirm={() =>
        retry.mutate(undefined, {
          onSuccess: ({ count }) => {
            toast(t("undelivered.retried", { count }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

function Letters({ mayRetry }: { mayRetry: boolean }) {
  const { t } = useTranslation();
  const query = useUndelivered();
  const retry = useRetryUndelivered();
  const toast = useToast();
  const [all, setAll] = useState(false);
  const send = (id: string) => retry.mutate([id], { onSuccess: ({ count }) => toast(t("undelivered.retried", { count })) });
  return (
    <>
      {retry.error ? <ErrorState error={retry.error} title={t("error.actionTitle")} /> : null}
      <Loaded query={query}>
        {(data) => {
          const letters = data.pages.flatMap((page) => page.items);
          if (letters.length === 0) return <EmptyState>{t("undelivered.empty")}</EmptyState>;
          return (
            <>
              <UndeliveredTable query={query} letters={letters} onRetry={mayRetry ? send : undefined} busy={retry.isPending} />
              {mayRetry && letters.length > 1 && (
                <Button mt="md" variant="default" onClick={() => setAll(true)} data-testid="retry-all">
                  {t("undelivered.retryAll")}
                </Button>
              )}
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
      {all && <RetryAll onClose={() => setAll(false)} />}
    </>
  );
}

/** UndeliveredPage lists notifications that could not be delivered, and why. */
export function UndeliveredPage() {
  const { t } = useTranslation();
  const mayRetry = canManageGovernance(useMe().data);
  return (
    <Page wide title={t("undelivered.title")} sub={t("undelivered.intro")} crumbs={[{ to: "/inbox", label: t("inbox.title") }]}>
      <GovernanceOnly>
        <Letters mayRetry={mayRetry} />
      </GovernanceOnly>
    </Page>
  );
}
