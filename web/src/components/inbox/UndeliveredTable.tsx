import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Undelivered } from "../../api/types";
import { undeliveredCSV } from "../../lib/tables/account";
import { isNoticeKind } from "../../lib/notices";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import type { Pages } from "../TableDownload";
import { PersonName } from "../Names";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import { instant } from "../../lib/table-sort";

const channels = ["inbox", "mail", "slack"] as const;

interface Props {
  letters: Undelivered[];
  /** Undefined if the reader may not do this. */
  onRetry: ((id: string) => void) | undefined;
  busy: boolean;
  /** The query of the notifications, which reads the remaining ones for the file. */
  query: Pages<Undelivered>;
}

/** UndeliveredTable lists notifications that could not be delivered, with a button to deliver each of them again. */
export function UndeliveredTable({ letters, onRetry, busy, query }: Props) {
  const { t } = useTranslation();
  /** channelOf returns the text for a channel. A webhook has the name that the operator configured. */
  const channelOf = (name: string) => {
    const known = channels.find((each) => each === name);
    return known ? t(`profile.channel.${known}`) : name;
  };
  const columns: Column<Undelivered>[] = [
    {
      key: "about",
      header: t("undelivered.about"),
      cell: ({ kind, ticket }) => (
        <span className={tables.stack}>
          <span>{t(`kindOfNotice.${isNoticeKind(kind) ? kind : "other"}`)}</span>
          {ticket && <Link to={`/tickets/${ticket}`}>{ticket}</Link>}
        </span>
      ),
    },
    { key: "to", header: t("undelivered.to"), cell: ({ person }) => (person ? <PersonName person={person} /> : <span className={tables.muted}>{t("undelivered.team")}</span>), sortBy: ({ person }) => person?.displayName },
    { key: "channel", header: t("undelivered.channel"), cell: ({ channel }) => channelOf(channel), sortBy: ({ channel }) => channelOf(channel) },
    {
      key: "problem",
      header: t("undelivered.problem"),
      cell: ({ problem, attempts }) => (
        <span className={tables.stack}>
          <span className={tables.why}>{problem}</span>
          <span className={tables.muted}>{t("undelivered.attempts", { count: attempts })}</span>
        </span>
      ),
    },
    { key: "givenUp", header: t("undelivered.givenUp"), nowrap: true, cell: ({ givenUpAt }) => <RelativeTime at={givenUpAt} />, sortBy: ({ givenUpAt }) => instant(givenUpAt) },
    {
      key: "retry",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: ({ id, person, channel }) =>
        onRetry && (
          <Button size="compact-sm" variant="default" disabled={busy} onClick={() => onRetry(id)} aria-label={t("undelivered.retryOf", { name: person?.displayName ?? channelOf(channel) })} data-testid={`retry-${id}`}>
            {t("undelivered.retry")}
          </Button>
        ),
    },
  ];
  return <DataTable query={query} csv={undeliveredCSV} label={t("undelivered.title")} columns={columns} rows={letters} rowKey={({ id }) => id} rowTestId={({ id }) => `undelivered-${id}`} testId="undelivered" />;
}
