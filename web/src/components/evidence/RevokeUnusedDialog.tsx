import { Button, Text } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { revokeGrant, useRevokeMany } from "../../api/flow-mutations";
import type { Revoked } from "../../api/flow-mutations";
import type { Unused } from "../../api/types";
import { useWords } from "../../lib/use-words";
import approvals from "../approvals/Approvals.module.css";
import { InfoDialog } from "../InfoDialog";
import { ReasonDialog } from "../ReasonDialog";
import { SentProgress } from "../SentProgress";
import tables from "../Tables.module.css";

function Line({ row }: { row: Unused }) {
  const words = useWords();
  return (
    <>
      {words.list(row.subjects.map((each) => each.title))} → {words.list(row.resources.map((each) => each.title))} <code className={tables.code}>{words.list(row.actions)}</code>
    </>
  );
}

/** Results shows the result of each grant, because one may have ended meanwhile. */
function Results({ results, rows, onClose }: { results: Revoked[]; rows: Unused[]; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <InfoDialog
      title={t("approvals.resultTitle")}
      size="lg"
      onClose={onClose}
      actions={
        <Button variant="default" onClick={onClose}>
          {t("action.close")}
        </Button>
      }
    >
      <ul className={approvals.summary} data-testid="revoke-results">
        {results.map((each, index) => {
          const row = rows[index];
          const Icon = each.error ? IconX : IconCheck;
          return (
            <li key={`${each.ticket}/${each.item ?? ""}`} className={approvals.result} data-value={each.error ? "refused" : "ok"}>
              <Icon size={15} className={each.error ? approvals.bad : approvals.ok} aria-label={t(each.error ? "approvals.refused" : "approvals.done")} />
              <span>
                <Link to={`/tickets/${each.ticket}`}>{each.ticket}</Link> {row && <Line row={row} />}
                {each.error && <small>{each.error.code === "stale" ? t("error.stale") : words.message(each.error.message)}</small>}
              </span>
            </li>
          );
        })}
      </ul>
    </InfoDialog>
  );
}

/** RevokeUnusedDialog revokes many grants with one reason. */
export function RevokeUnusedDialog({ rows, onClose }: { rows: Unused[]; onClose: (done: boolean) => void }) {
  const { t } = useTranslation();
  const revoke = useRevokeMany();
  if (revoke.data) return <Results results={revoke.data} rows={rows} onClose={() => onClose(true)} />;
  return (
    <ReasonDialog
      title={t("decide.revokeTitle", { count: rows.length })}
      text={
        <>
          <Text size="sm">{t("unused.revokeText")}</Text>
          <ul style={{ margin: "8px 0 0", paddingInlineStart: 18, maxHeight: 200, overflowY: "auto" }}>
            {rows.map((row) => (
              <li key={`${row.policy}/${row.sid}`}>
                <Line row={row} />
              </li>
            ))}
          </ul>
          <SentProgress progress={revoke.progress} size={1} />
        </>
      }
      confirm={t("unused.revoke", { count: rows.length })}
      danger
      pending={revoke.isPending}
      error={revoke.error}
      testId="revoke-many"
      onConfirm={(reason) =>
        revoke.send({
          entries: rows.flatMap((row) => (row.ticket ? [{ ticket: row.ticket, item: row.ticketItem }] : [])),
          send: (part) => Promise.all(part.map((grant) => revokeGrant(grant, reason))),
        })
      }
      onClose={() => onClose(false)}
    />
  );
}
