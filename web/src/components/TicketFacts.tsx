import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../api/queries";
import type { Ticket, TicketItem } from "../api/types";
import { hoursText } from "../lib/hours";
import { expiryOf, nodesByResource, sumClusters } from "../lib/items";
import { endedAt } from "../lib/timeline";
import { statementPath } from "../lib/flow-link";
import { useWords } from "../lib/use-words";
import { ClusterStateBadge, ModeBadge } from "./Badge";
import { canSeeGovernance } from "./GovernanceOnly";
import { useItemFlows } from "./ItemFlowsLink";
import { MemberSummary, useWorstMembers } from "./MemberSummary";
import { NodeSummary } from "./NodeSummary";
import { CopyName, PersonName, RefName } from "./Names";
import tables from "./Tables.module.css";
import classes from "./TicketDetail.module.css";
import { RelativeTime } from "./Time";

/** Registration shows a client outside the fleet with its addresses before and after the change. */
function Registration({ workload }: { workload: NonNullable<TicketItem["workload"]> }) {
  const { t } = useTranslation();
  const addresses = (list: string[]) =>
    list.map((address) => (
      <code key={address} className={tables.code}>{address}</code>
    ));
  return (
    <>
      <dt>{t("ticket.workload")}</dt>
      <dd className={tables.stack}>
        <code className={tables.code}>{workload.id}</code>
        {workload.description && <span className={tables.muted}>{workload.description}</span>}
      </dd>
      <dt>{t("ticket.addressesBefore")}</dt>
      <dd className={tables.stack} data-testid="addresses-before">{workload.before.length > 0 ? addresses(workload.before) : <span className={tables.muted}>{t("ticket.addressesNone")}</span>}</dd>
      <dt>{t("ticket.addresses")}</dt>
      <dd className={tables.stack} data-testid="addresses-after">{addresses(workload.after)}</dd>
    </>
  );
}

/** About shows the fields of the item that its kind has. */
function About({ ticket, item }: { ticket: Ticket; item: TicketItem }) {
  const { t, i18n } = useTranslation();
  const words = useWords();
  const ended = endedAt(ticket, item);
  // Access that is being revoked ends before its expiry date.
  const expires = expiryOf(item);
  const lasts = ticket.kind === "grant" || ticket.kind === "extend";
  const connections = useItemFlows(item, ticket.kind);
  const governs = canSeeGovernance(useMe().data);
  return (
    <>
      {item.application && (
        <>
          <dt>{t("ticket.application")}</dt>
          <dd>
            <RefName kind="applications" about={item.application} full />
          </dd>
        </>
      )}
      {item.resource && (
        <>
          <dt>{t("ticket.resource")}</dt>
          <dd>
            <RefName kind="resources" about={item.resource} full />
          </dd>
        </>
      )}
      {item.actions && item.actions.length > 0 && (
        <>
          <dt>{t("ticket.actions")}</dt>
          <dd className={tables.stack}>
            {item.actions.map((action) => (
              <code key={action} className={tables.code}>{action}</code>
            ))}
          </dd>
        </>
      )}
      {connections && (
        <>
          <dt>{t("access.connections")}</dt>
          <dd>
            <Link to={connections} data-testid="ticket-flows">{t("connections.explore")}</Link>
          </dd>
        </>
      )}
      {governs && item.policy && item.sid && item.state !== "pending" && (
        <>
          <dt>{t("access.statement")}</dt>
          <dd>
            <Link to={statementPath(item.policy, item.sid)} data-testid="ticket-statement"><code className={tables.code}>{item.sid}</code></Link>
          </dd>
        </>
      )}
      {item.target && (
        <>
          <dt>{t("ticket.target")}</dt>
          <dd>
            <Link to={`/tickets/${item.target.ticket}`}>{item.target.ticket}</Link>
          </dd>
        </>
      )}
      {item.toMode && (
        <>
          <dt>{t("ticket.mode")}</dt>
          <dd>
            {item.fromMode && (
              <>
                <ModeBadge mode={item.fromMode} /> →{" "}
              </>
            )}
            <ModeBadge mode={item.toMode} />
          </dd>
        </>
      )}
      {item.object && (
        <>
          <dt>{t("ticket.objectName")}</dt>
          <dd>
            {t(`objectKind.${item.object.kind}`)} <code className={tables.code}>{item.object.name}</code>
          </dd>
        </>
      )}
      {item.workload && <Registration workload={item.workload} />}
      {lasts && (
        <>
          <dt>{t("ticket.duration")}</dt>
          <dd>{words.duration(item.durationSeconds)}</dd>
        </>
      )}
      {item.hours && (
        <>
          <dt>{t("ticket.hours")}</dt>
          <dd data-testid="ticket-hours">{hoursText(item.hours, i18n.language)}</dd>
        </>
      )}
      {ended && (
        <>
          <dt>{t("ticket.ended")}</dt>
          <dd data-testid="ticket-ended">
            <RelativeTime at={ended} />
          </dd>
        </>
      )}
      {expires && (
        <>
          <dt>{t("ticket.expires")}</dt>
          <dd>
            <RelativeTime at={expires} />
          </dd>
        </>
      )}
      {item.approvalPolicy && (
        <>
          <dt>{t("ticket.approvalPolicy")}</dt>
          <dd>
            <code className={tables.code}>{item.approvalPolicy}</code>
          </dd>
        </>
      )}
    </>
  );
}

/** TicketFacts shows the facts of a ticket: its requester, what it is about, when it was submitted, and its trace. */
export function TicketFacts({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const [first] = ticket.items;
  const only = ticket.items.length === 1 ? first : undefined;
  return (
    <section className={classes.card} aria-label={t("ticket.details")}>
      <dl className={classes.facts}>
        <dt>{t("ticket.requester")}</dt>
        <dd>
          <PersonName person={ticket.requester} />
        </dd>
        {only && <About ticket={ticket} item={only} />}
        {!only && (
          <>
            <dt>{t("ticket.items")}</dt>
            <dd>{ticket.items.length}</dd>
          </>
        )}
        <dt>{t("ticket.submitted")}</dt>
        <dd>
          <RelativeTime at={ticket.createdAt} />
        </dd>
        {ticket.traceId && (
          <>
            <dt title={t("ticket.traceHelp")}>{t("ticket.trace")}</dt>
            <dd data-testid="ticket-trace">
              {ticket.traceUrl ? (
                <a href={ticket.traceUrl} title={t("ticket.traceOpen")} target="_blank" rel="noopener noreferrer">
                  <code className={classes.trace}>{ticket.traceId}</code>
                </a>
              ) : (
                <code className={classes.trace}>{ticket.traceId}</code>
              )}
              <CopyName name={ticket.traceId} label={t("ticket.traceCopy")} />
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

/** mostMembers is the number of members that are shown at first. */
const mostMembers = 20;

/** mostResources is the number of resources whose nodes are shown. */
const mostResources = 5;

/** TicketNodes shows on how many nodes the change of each resource is enforced, those with the most nodes that do not enforce it first. */
function TicketNodes({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const all = nodesByResource(ticket.items);
  if (all.length === 1) return <NodeSummary nodes={all[0]?.nodes} />;
  const rest = all.length - mostResources;
  return (
    <>
      {all.slice(0, mostResources).map(({ resource, nodes }) => (
        <div key={resource.name}>
          <p className={classes.later}>{resource.title}</p>
          <NodeSummary nodes={nodes} testId={`nodes-${resource.name}`} />
        </div>
      ))}
      {rest > 0 && <p className={classes.later}>{t("nodes.moreResources", { count: rest })}</p>}
    </>
  );
}

/** TicketClusters shows the state of a ticket in the members, with the worst first. */
export function TicketClusters({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const words = useWords();
  const clusters = sumClusters(ticket.items);
  const { shown, more } = useWorstMembers(clusters, mostMembers, (cluster) => cluster.state);
  // With one item the ticket's counts are used; with several, the listed members are counted.
  const counts = ticket.items.length === 1 ? ticket.items[0]?.members : undefined;
  // The members are not shown after the end, or before any state was read.
  // For workloads the members' states are on the pages of the resources that they reach.
  if (clusters.length === 0 && (ticket.state !== "pending" || ticket.kind === "workload")) return null;
  return (
    <section className={classes.card} aria-label={t("ticket.clusters")}>
      <h2 className={classes.cardTitle}>{t("ticket.clusters")}</h2>
      {clusters.length === 0 && <p className={classes.later}>{t("ticket.clustersLater")}</p>}
      <MemberSummary members={clusters} counts={counts} above={mostMembers} />
      {shown.map((cluster) => (
        <div key={cluster.cluster} className={classes.cluster}>
          <span>{cluster.cluster}</span>
          <ClusterStateBadge state={cluster.state} message={cluster.message} gone={ticket.state === "revoking"} testId={`cluster-state-${cluster.cluster}`} />
          {cluster.message && cluster.state !== "Realized" && <small>{words.message(cluster.message)}</small>}
        </div>
      ))}
      {more}
      <TicketNodes ticket={ticket} />
    </section>
  );
}
