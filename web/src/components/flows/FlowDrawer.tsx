import { Button, Drawer } from "@mantine/core";
import { IconArrowRight, IconFileText, IconTicket, IconUsers } from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../../api/queries";
import type { CatalogRef, Connection } from "../../api/types";
import { isRefused } from "../../lib/folded-connections";
import { statementPath } from "../../lib/flow-link";
import { DecisionBadge } from "../Badge";
import { ConnectionCount } from "../ConnectionCount";
import { Notice } from "../Feedback";
import { canSeeGovernance } from "../GovernanceOnly";
import { CopyName, PersonName, RefName } from "../Names";
import { RequestAccessLink } from "../RequestAccessLink";
import tables from "../Tables.module.css";
import { TicketLink } from "../TicketLink";
import { RelativeTime, DayAndTime } from "../Time";
import { FlowVerdict } from "./FlowTable";
import classes from "./Flows.module.css";

function Step({ icon: Icon, title, testId, children }: { icon: Icon; title: string; testId: string; children: ReactNode }) {
  return (
    <li className={classes.link} data-testid={testId}>
      <Icon aria-hidden />
      <h3 className={classes.linkTitle}>{title}</h3>
      {children}
    </li>
  );
}

function End({ kind, about }: { kind: "applications" | "resources"; about: CatalogRef }) {
  return about.name ? <RefName kind={kind} about={about} full /> : <strong>{about.title}</strong>;
}

function Flow({ row }: { row: Connection }) {
  const { t } = useTranslation();
  return (
    <Step icon={IconArrowRight} title={t("flows.chain.flow")} testId="chain-flow">
      <dl className={classes.facts}>
        <dt>{t("connections.peerApplication")}</dt>
        <dd><End kind="applications" about={row.subject} /></dd>
        <dt>{t("connections.peerResource")}</dt>
        <dd><End kind="resources" about={row.resource} /></dd>
        <dt>{t("connections.action")}</dt>
        <dd>
          {row.action && <code className={tables.code}>{row.action} </code>}
          {row.port}/{row.protocol}
        </dd>
        <dt>{t("connections.cluster")}</dt>
        <dd>{row.sourceCluster && row.sourceCluster !== row.cluster ? `${row.sourceCluster} → ${row.cluster}` : row.cluster}</dd>
        <dt>{t("connections.decision")}</dt>
        <dd><DecisionBadge decision={row.decision} /></dd>
        <dt>{t("flows.verdict")}</dt>
        <dd><FlowVerdict verdict={row.verdict} disagrees={row.disagrees} /></dd>
        <dt>{t("connections.count")}</dt>
        <dd><ConnectionCount of={row.count} /></dd>
        <dt>{t("flows.firstSeen")}</dt>
        <dd><DayAndTime at={row.firstSeen} /></dd>
        <dt>{t("connections.lastSeen")}</dt>
        <dd><RelativeTime at={row.lastSeen} /></dd>
      </dl>
      {row.disagrees && (
        <div className={tables.above}>
          <Notice testId="disagreement">{t(row.verdict === "dropped" ? "flows.disagree.dropped" : "flows.disagree.forwarded")}</Notice>
        </div>
      )}
    </Step>
  );
}

function Ticket({ row }: { row: Connection }) {
  const { t } = useTranslation();
  return (
    <Step icon={IconTicket} title={t("flows.chain.ticket")} testId="chain-ticket">
      <TicketLink of={row} />
    </Step>
  );
}

function Approvers({ row }: { row: Connection }) {
  const { t } = useTranslation();
  const people = row.approvers ?? [];
  return (
    <Step icon={IconUsers} title={t("flows.chain.approvers")} testId="chain-approvers">
      {people.length === 0 ? <span className={tables.muted}>{t(row.ticketVisible === false ? "access.hiddenTicket" : "flows.noApprovers")}</span> : <div className={tables.badges}>{people.map((person) => <PersonName key={person.id} person={person} />)}</div>}
    </Step>
  );
}

/** Chain links the flow to the statement that decided, its ticket, and the people who approved it. */
function Chain({ row }: { row: Connection }) {
  const { t } = useTranslation();
  const governs = canSeeGovernance(useMe().data);
  return (
    <ol className={classes.chain}>
      <Flow row={row} />
      <Step icon={IconFileText} title={t("flows.chain.statement")} testId="chain-statement">
        {row.sid ? (
          <>
            {governs && row.policy ? <Link to={statementPath(row.policy, row.sid)} data-testid="flow-statement"><code className={tables.code}>{row.sid}</code></Link> : <code className={tables.code}>{row.sid}</code>}
            <CopyName name={row.sid} />
            {row.policy && (
              <div className={`${tables.muted} ${tables.sentence}`}>
                {t("flows.inPolicy")} {governs ? <Link to={`/access-policies/${encodeURIComponent(row.policy)}`} data-testid="flow-policy"><code>{row.policy}</code></Link> : <code>{row.policy}</code>}
                <CopyName name={row.policy} />
              </div>
            )}
          </>
        ) : (
          <span className={tables.muted}>{t(`flows.noStatement.${row.decision}`)}</span>
        )}
      </Step>
      {row.sid && <Ticket row={row} />}
      {row.ticket && <Approvers row={row} />}
    </ol>
  );
}

const refOf = ({ id, name }: CatalogRef) => name || id;

interface Props {
  row: Connection | undefined;
  /** Returns the URL with other filters and the same window. */
  pathWith: (change: Record<string, string | undefined>) => string;
  onClose: () => void;
}

/** Narrowing links to related flows. */
function Narrowing({ row, pathWith }: { row: Connection; pathWith: Props["pathWith"] }) {
  const { t } = useTranslation();
  const subject = refOf(row.subject);
  const resource = refOf(row.resource);
  const places = [
    { key: "subject", to: subject && pathWith({ subject }) },
    { key: "resource", to: resource && pathWith({ resource }) },
    { key: "statement", to: row.sid && pathWith({ policy: row.policy, sid: row.sid }) },
    { key: "raw", to: pathWith({ tab: "raw", subject, resource, port: String(row.port), cluster: row.cluster }) },
  ] as const;
  return (
    <div className={classes.narrowing}>
      {places.map(({ key, to }) =>
        to ? (
          <Button key={key} component={Link} to={to} size="compact-sm" variant="default" data-testid={`narrow-${key}`}>
            {t(`flows.only.${key}`)}
          </Button>
        ) : null,
      )}
      {isRefused(row.decision) && row.subject.id && row.resource.id && row.action && <RequestAccessLink application={row.subject.id} resource={row.resource.id} action={row.action} />}
    </div>
  );
}

/** FlowDrawer shows the details of a connection beside the table. */
export function FlowDrawer({ row, pathWith, onClose }: Props) {
  const { t } = useTranslation();
  return (
    <Drawer opened={row !== undefined} onClose={onClose} position="right" size="md" title={t("flows.detail")} closeButtonProps={{ "aria-label": t("action.close") }} transitionProps={{ duration: 120 }}>
      {row && (
        <div data-testid="flow-drawer">
          <Chain row={row} />
          <Narrowing row={row} pathWith={pathWith} />
        </div>
      )}
    </Drawer>
  );
}
