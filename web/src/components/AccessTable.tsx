import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useApplicationAccessUses, useResourceAccessUses } from "../api/queries";
import type { Access, AccessUse, Use } from "../api/types";
import { ClusterChips } from "./ClusterChips";
import { DataTable } from "./DataTable";
import type { Column } from "./DataTable";
import { Hours } from "./Hours";
import { LastUse } from "./LastUse";
import { RefName } from "./Names";
import { RevokeDialog } from "./RevokeDialog";
import classes from "./Tables.module.css";
import { Reason, TicketLink } from "./TicketLink";
import { RelativeTime } from "./Time";
import { accessCSV } from "../lib/tables/access";
import { flowsPath } from "../lib/flow-link";
import { instant } from "../lib/table-sort";

interface Props {
  items: Access[];
  peer: "application" | "resource";
  label: string;
  /** The id of the application or resource that the page is about. */
  about: string;
}

const keyOfUse = (policy: string, sid: string, subject: string, resource: string) => [policy, sid, subject, resource].join("\n");

/** useLastUses returns the last use of a statement between two names. */
function useLastUses(peer: Props["peer"], about: string): (row: Access) => Use {
  const ofApplication = useApplicationAccessUses(about, peer === "resource");
  const ofResource = useResourceAccessUses(about, peer === "application");
  const { data, isLoading } = peer === "resource" ? ofApplication : ofResource;
  if (!data?.available) return () => (isLoading ? null : undefined);
  const found = new Map(data.items.map((use: AccessUse) => [keyOfUse(use.policy, use.sid, use.subject, use.resource), use]));
  return (row) => found.get(keyOfUse(row.policy, row.sid, row.subject.name, row.resource.name)) ?? { state: "unknown" };
}

/** pathOf returns the path of the connections of a row. The statement may name the end that the page is about by a wildcard, which has no page. */
const pathOf = (row: Access, peer: Props["peer"], about: string) =>
  flowsPath(peer === "resource" ? { subject: { ...row.subject, id: about }, resource: row.resource } : { subject: row.subject, resource: { ...row.resource, id: about } });

/** AccessTable lists the statements that allow or deny access, with their origin, their last use and the members in which they apply. */
export function AccessTable({ items, peer, label, about }: Props) {
  const { t } = useTranslation();
  const [revoking, setRevoking] = useState<Access>();
  const lastUse = useLastUses(peer, about);
  const anyRevocable = items.some((item) => item.canRevoke && item.ticket);

  const columns: Column<Access>[] = [
    peer === "resource"
      ? { key: "peer", header: t("access.resource"), cell: (row) => <RefName kind="resources" about={row.resource} full />, sortBy: (row: Access) => row.resource.title }
      : { key: "peer", header: t("access.subject"), cell: (row) => <RefName kind="applications" about={row.subject} full />, sortBy: (row: Access) => row.subject.title },
    {
      key: "actions",
      header: t("access.actions"),
      cell: (row) => (
        <span className={classes.stack}>
          {row.effect === "Deny" && <strong>{t("effect.Deny")}</strong>}
          {row.actions.map((action) => (
            <code key={action} className={classes.code}>{action}</code>
          ))}
        </span>
      ),
    },
    {
      key: "statement",
      header: t("access.statement"),
      sortBy: (row) => row.sid,
      cell: (row) => (
        <span className={classes.stack}>
          <code className={`${classes.code} ${classes.wraps}`} title={row.policy}>{row.sid}</code>
          {!row.counting && <span className={classes.muted} title={t("access.notCountingHelp")}>{t("access.notCounting")}</span>}
        </span>
      ),
    },
    { key: "since", header: t("access.since"), nowrap: true, cell: (row) => row.since && <RelativeTime at={row.since} />, sortBy: (row) => instant(row.since) },
    { key: "until", header: t("access.until"), nowrap: true, cell: (row) => <span className={classes.stack}>{row.notAfter ? <RelativeTime at={row.notAfter} /> : <span className={classes.muted}>{t("time.untilRevoked")}</span>}<Hours hours={row.hours} /></span>, sortBy: (row) => instant(row.notAfter) },
    { key: "used", header: t("access.lastUsed"), nowrap: true, cell: (row) => <LastUse use={lastUse(row)} to={pathOf(row, peer, about)} label={t("access.connectionsOf", { subject: row.subject.title, resource: row.resource.title })} />, sortBy: (row) => instant(lastUse(row)?.lastUsed) },
    { key: "clusters", header: t("access.clusters"), cell: (row) => <ClusterChips clusters={row.clusters} /> },
    { key: "ticket", header: t("access.ticket"), sortBy: (row) => row.ticket, nowrap: true, cell: (row) => <TicketLink of={row} /> },
    { key: "reason", header: t("access.reason"), cell: (row) => <Reason of={row} /> },
  ];
  if (anyRevocable) {
    columns.push({
      key: "revoke",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) =>
        row.canRevoke && row.ticket ? (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => setRevoking(row)}
            aria-label={t("access.revokeOf", { subject: row.subject.title, resource: row.resource.title })}
            data-testid={`revoke-${row.ticket}`}
          >
            {t("access.revoke")}
          </Button>
        ) : null,
    });
  }

  return (
    <>
      <DataTable sortParam="access-sort" label={label} columns={columns} rows={items} rowKey={(row) => `${row.policy}/${row.sid}/${row.subject.name}/${row.resource.name}`} rowTestId={(row) => `access-row-${row.sid}`} dim={(row) => !row.counting} testId="access-table" csv={accessCSV(about, lastUse)} />
      {revoking?.ticket && (
        <RevokeDialog
          ticketId={revoking.ticket}
          item={revoking.ticketItem}
          targets={[{ application: revoking.subject.title, resource: revoking.resource.title, actions: revoking.actions, clusters: revoking.clusters?.map((cluster) => cluster.cluster) ?? [] }]}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </>
  );
}
