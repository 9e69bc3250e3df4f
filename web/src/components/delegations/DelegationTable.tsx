import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useEndDelegation } from "../../api/account";
import type { Delegation } from "../../api/types";
import { delegationsCSV } from "../../lib/tables/requests";
import { stateOf } from "../../lib/delegation";
import { ConfirmDialog } from "../ConfirmDialog";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import type { Pages } from "../TableDownload";
import { PersonName } from "../Names";
import { ToneBadge } from "../Badge";
import tables from "../Tables.module.css";
import { RelativeTime, DayAndTime } from "../Time";
import { useToast } from "../toast-context";
import { instant } from "../../lib/table-sort";

const tones = { active: "ok", planned: "busy", ended: "idle", over: "idle" } as const;

function EndDialog({ delegation, onClose }: { delegation: Delegation; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const end = useEndDelegation();
  return (
    <ConfirmDialog
      title={t("delegations.endTitle")}
      text={t("delegations.endText", { from: delegation.from.displayName, to: delegation.to.displayName })}
      confirm={t("delegations.end")}
      danger
      pending={end.isPending}
      error={end.error}
      testId="end-delegation"
      onConfirm={() =>
        end.mutate(delegation.id, {
          onSuccess: () => {
            toast(t("delegations.ended"));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

interface Props {
  label: string;
  rows: Delegation[];
  /** Which of the two people of a delegation the table names. */
  show: "from" | "to" | "both";
  partial?: boolean;
  /** The query of the rows, if it reads no others. */
  query?: Pages<Delegation>;
}

/** DelegationTable lists delegations. `show` selects whether the delegating person, the delegate or both are shown. */
export function DelegationTable({ label, rows, show, partial, query }: Props) {
  const { t } = useTranslation();
  const [ending, setEnding] = useState<Delegation>();
  const now = new Date();
  const to: Column<Delegation> = { key: "to", header: t("delegations.to"), cell: (row) => <PersonName person={row.to} />, sortBy: (row) => row.to.displayName };
  const from: Column<Delegation> = { key: "from", header: t("delegations.from"), cell: (row) => <PersonName person={row.from} />, sortBy: (row) => row.from.displayName };
  const columns: Column<Delegation>[] = [
    ...(show === "from" ? [] : [to]),
    ...(show === "to" ? [] : [from]),
    {
      key: "when",
      header: t("delegations.when"),
      sortBy: (row) => instant(row.start),
      cell: (row) => (
        <span className={tables.stack}>
          <span>
            <DayAndTime at={row.start} /> – <DayAndTime at={row.end} />
          </span>
          {row.endedAt && (
            <span className={tables.muted}>
              {t("delegations.endedAt")} <RelativeTime at={row.endedAt} />
            </span>
          )}
        </span>
      ),
    },
    { key: "reason", header: t("delegations.reason"), cell: (row) => row.reason, sortBy: (row) => row.reason },
    {
      key: "state",
      header: t("delegations.state"),
      cell: (row) => {
        const state = stateOf(row, now);
        return <ToneBadge tone={tones[state]} word={t(`delegations.states.${state}`)} testId="delegation-state" value={state} />;
      },
    },
    {
      key: "end",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) =>
        row.canEnd && (
          <Button size="compact-sm" variant="default" onClick={() => setEnding(row)} aria-label={t("delegations.endOf", { from: row.from.displayName, to: row.to.displayName })} data-testid={`end-${row.id}`}>
            {t("delegations.end")}
          </Button>
        ),
    },
  ];
  return (
    <>
      <DataTable partial={partial} query={query} csv={delegationsCSV} sortParam={`${show}-sort`} label={label} columns={columns} rows={rows} rowKey={(row) => row.id} rowTestId={(row) => `delegation-${row.id}`} dim={(row) => ["ended", "over"].includes(stateOf(row, now))} />
      {ending && <EndDialog delegation={ending} onClose={() => setEnding(undefined)} />}
    </>
  );
}
