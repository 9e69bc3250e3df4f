import { Button, Group, SegmentedControl } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useInbox, useMarkInbox } from "../api/account";
import { useMe } from "../api/queries";
import { EmptyState, ErrorState, Loaded } from "../components/Feedback";
import { NotificationList } from "../components/inbox/NotificationList";
import { LoadMore } from "../components/LoadMore";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { useFilters } from "../lib/use-filters";

/** InboxPage lists the person's notifications. */
export function InboxPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const unread = search.get("show") === "unread";
  const query = useInbox(unread ? { unread } : {});
  const mark = useMarkInbox();
  const me = useMe().data;
  const count = query.data?.pages[0]?.unread ?? 0;

  return (
    <Page
      title={t("inbox.title")}
      sub={t("inbox.intro")}
      actions={
        <Group gap="sm">
          {canSeeGovernance(me) && (
            <Button component={Link} to="/inbox/undelivered" variant="default" data-testid="open-undelivered">
              {t("undelivered.title")}
            </Button>
          )}
          <Button component={Link} to="/profile#notifications" variant="default">
            {t("inbox.preferences")}
          </Button>
        </Group>
      }
    >
      <Group mb="md" justify="space-between">
        <SegmentedControl
          size="sm"
          aria-label={t("inbox.show")}
          data={[
            { value: "all", label: t("inbox.all") },
            { value: "unread", label: count > 0 ? `${t("inbox.unread")} (${count})` : t("inbox.unread") },
          ]}
          value={unread ? "unread" : "all"}
          onChange={(show) => change({ show: show === "unread" ? show : undefined })}
        />
        {count > 0 && (
          <Button variant="subtle" loading={mark.isPending} onClick={() => mark.mutate({ read: true })} data-testid="read-all">
            {t("inbox.markAll")}
          </Button>
        )}
      </Group>
      {mark.error ? <ErrorState error={mark.error} title={t("error.actionTitle")} /> : null}
      <Loaded query={query}>
        {(data) => {
          const items = data.pages.flatMap((page) => page.items);
          return items.length > 0 ? <NotificationList items={items} /> : <EmptyState>{t(unread ? "inbox.emptyUnread" : "inbox.empty")}</EmptyState>;
        }}
      </Loaded>
      <LoadMore query={query} />
    </Page>
  );
}
