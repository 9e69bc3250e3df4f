import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useEndOtherSessions, useSessions } from "../../api/account";
import type { SessionInfo } from "../../api/types";
import { sessionsCSV } from "../../lib/tables/account";
import { browserName } from "../../lib/browser-name";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { ErrorState, Loaded } from "../Feedback";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import { useToast } from "../toast-context";
import { instant } from "../../lib/table-sort";

/** Sessions lists where the person is signed in. All other sessions can be ended together. */
export function Sessions() {
  const { t } = useTranslation();
  const toast = useToast();
  const query = useSessions();
  const end = useEndOtherSessions();
  const columns: Column<SessionInfo>[] = [
    {
      key: "browser",
      header: t("profile.session"),
      cell: (row) => (
        <span className={tables.badges}>
          <span title={row.userAgent}>{browserName(row.userAgent ?? "") ?? t("profile.unknownBrowser")}</span>
          {row.current && <ToneBadge tone="ok" word={t("profile.thisOne")} />}
        </span>
      ),
    },
    { key: "created", header: t("profile.signedIn"), nowrap: true, cell: (row) => <RelativeTime at={row.createdAt} />, sortBy: (row) => instant(row.createdAt) },
    { key: "expires", header: t("profile.ends"), nowrap: true, cell: (row) => <RelativeTime at={row.expiresAt} />, sortBy: (row) => instant(row.expiresAt) },
  ];
  return (
    <Section title={t("profile.sessions")} testId="sessions">
      <Loaded query={query}>
        {({ items }) => (
          <>
            <DataTable csv={sessionsCSV} sortParam="sessions-sort" label={t("profile.sessions")} columns={columns} rows={items} rowKey={(row) => `${row.createdAt} ${row.userAgent ?? ""} ${String(row.current)}`} />
            {end.error ? <ErrorState error={end.error} title={t("error.actionTitle")} /> : null}
            {items.some((row) => !row.current) && (
              <Button mt="md" variant="default" loading={end.isPending} onClick={() => end.mutate(undefined, { onSuccess: () => toast(t("profile.endedOthers")) })} data-testid="end-others">
                {t("profile.endOthers")}
              </Button>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}
