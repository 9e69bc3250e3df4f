import { ActionIcon, Button, Group, Popover } from "@mantine/core";
import { IconBell } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useInbox, useMarkInbox } from "../api/account";
import { EmptyState, Loaded } from "../components/Feedback";
import { NotificationList } from "../components/inbox/NotificationList";
import { useWords } from "../lib/use-words";
import classes from "./Shell.module.css";

const shown = 6;

/** Newest shows the newest unread notifications. */
function Newest({ onLeave }: { onLeave: () => void }) {
  const { t } = useTranslation();
  const query = useInbox({ unread: true, limit: shown });
  const mark = useMarkInbox();
  return (
    <>
      <Loaded query={query}>
        {(data) => {
          const items = data.pages[0]?.items ?? [];
          return items.length === 0 ? <EmptyState testId="bell-empty">{t("inbox.emptyUnread")}</EmptyState> : <NotificationList items={items} onLeave={onLeave} compact />;
        }}
      </Loaded>
      <Group mt="sm" justify="space-between">
        <Button component={Link} to="/inbox" variant="subtle" size="compact-sm" onClick={onLeave} data-testid="bell-all">
          {t("inbox.seeAll")}
        </Button>
        {(query.data?.pages[0]?.unread ?? 0) > 0 && (
          <Button variant="subtle" color="gray" size="compact-sm" loading={mark.isPending} onClick={() => mark.mutate({ read: true })} data-testid="bell-read-all">
            {t("inbox.markAll")}
          </Button>
        )}
      </Group>
    </>
  );
}

/** NotificationMenu shows the number of unread notifications and the newest of them on every page. */
export function NotificationMenu({ unread }: { unread: number }) {
  const { t } = useTranslation();
  const words = useWords();
  const [open, setOpen] = useState(false);
  const label = unread > 0 ? t("inbox.open", { count: unread }) : t("inbox.openNone");
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" width={380} shadow="md" trapFocus returnFocus withRoles={false}>
      <Popover.Target>
        <ActionIcon className={classes.bell} variant="subtle" color="gray" size="lg" aria-label={label} aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(!open)} data-testid="bell" data-value={unread}>
          <IconBell size={18} stroke={1.7} aria-hidden />
          {unread > 0 && <span className={classes.unread} aria-hidden>{unread > 99 ? `${words.number(99)}+` : words.number(unread)}</span>}
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={t("inbox.title")} maw="calc(100vw - 20px)">
        {open && <Newest onLeave={() => setOpen(false)} />}
      </Popover.Dropdown>
    </Popover>
  );
}
