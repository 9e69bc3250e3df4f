import { ActionIcon, VisuallyHidden } from "@mantine/core";
import { IconMail, IconMailOpened } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMarkInbox } from "../../api/account";
import type { InboxItem } from "../../api/types";
import { isNoticeKind } from "../../lib/notices";
import { useWords } from "../../lib/use-words";
import { NamedText } from "../Names";
import { RelativeTime } from "../Time";
import classes from "./NotificationList.module.css";

interface Props {
  items: InboxItem[];
  /** Leaves out the texts where there is little space. */
  compact?: boolean;
  onLeave?: () => void;
}

function One({ item, compact, onLeave }: { item: InboxItem; compact: boolean; onLeave: (() => void) | undefined }) {
  const { t } = useTranslation();
  const mark = useMarkInbox();
  const words = useWords();
  const { id, at, kind, ticket, read } = item;
  const title = words.message(item.title);
  const label = t(read ? "inbox.markUnread" : "inbox.markRead");
  const to = ticket ? `/tickets/${ticket}` : kind === "delegation" ? "/delegations" : undefined;
  const paragraphs = [[item.body], item.items, item.notes];
  const Icon = read ? IconMail : IconMailOpened;
  const open = () => {
    if (!read) mark.mutate({ ids: [id], read: true });
    onLeave?.();
  };
  return (
    <li className={`${classes.notice} ${read ? "" : classes.unread}`} data-testid={`notice-${id}`} data-value={read ? "read" : "unread"}>
      <span className={classes.dot} aria-hidden />
      <div>
        {!read && <VisuallyHidden>{t("inbox.isUnread")} </VisuallyHidden>}
        {to ? <Link className={classes.title} to={to} onClick={open}><NamedText text={title} /></Link> : <span className={classes.title}><NamedText text={title} /></span>}
      </div>
      <ActionIcon variant="subtle" color="gray" size="sm" loading={mark.isPending} onClick={() => mark.mutate({ ids: [id], read: !read })} aria-label={`${label}: ${title}`} title={label} data-testid={`mark-${id}`}>
        <Icon size={15} aria-hidden />
      </ActionIcon>
      <div className={classes.meta}>
        <span>{t(`kindOfNotice.${isNoticeKind(kind) ? kind : "other"}`)}</span>
        {ticket && <span>{ticket}</span>}
        <RelativeTime at={at} />
      </div>
      {!compact && <p className={classes.body}><NamedText text={paragraphs.filter((lines) => lines.length > 0).map((lines) => lines.map((line) => words.message(line)).join("\n")).join("\n\n")} /></p>}
    </li>
  );
}

/** NotificationList lists notifications, newest first. Opening the link of a notification marks it as read. */
export function NotificationList({ items, compact = false, onLeave }: Props) {
  const { t } = useTranslation();
  return (
    <ul className={`${classes.list} ${compact ? classes.compact : ""}`} aria-label={t("inbox.title")} data-testid="notices">
      {items.map((item) => (
        <One key={item.id} item={item} compact={compact} onLeave={onLeave} />
      ))}
    </ul>
  );
}
