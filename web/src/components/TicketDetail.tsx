import { Tabs } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { Ticket } from "../api/types";
import { endedAt } from "../lib/timeline";
import { useWords } from "../lib/use-words";
import { ClusterStateBadge, TicketStateBadge } from "./Badge";
import { DecisionBar } from "./DecisionBar";
import { PersonName, RefName } from "./Names";
import { Statement } from "./Statement";
import tables from "./Tables.module.css";
import classes from "./TicketDetail.module.css";
import { Ago } from "./Time";
import { Timeline } from "./Timeline";

function Facts({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const words = useWords();
  const item = ticket.items[0];
  const ended = endedAt(ticket);
  // What is being taken back will not last until its date.
  const expires = ended || ticket.state === "revoking" ? undefined : ticket.expiresAt;
  return (
    <section className={classes.card} aria-label={t("ticket.details")}>
      <dl className={classes.facts}>
        <dt>{t("ticket.requester")}</dt>
        <dd>
          <PersonName person={ticket.requester} />
        </dd>
        {item && (
          <>
            <dt>{t("ticket.application")}</dt>
            <dd>
              <RefName kind="applications" about={item.application} full />
            </dd>
            <dt>{t("ticket.resource")}</dt>
            <dd>
              <RefName kind="resources" about={item.resource} full />
            </dd>
            <dt>{t("ticket.actions")}</dt>
            <dd className={tables.stack}>
              {item.actions.map((action) => (
                <code key={action} className={tables.code}>{action}</code>
              ))}
            </dd>
          </>
        )}
        <dt>{t("ticket.duration")}</dt>
        <dd>{words.duration(ticket.durationSeconds)}</dd>
        {ended && (
          <>
            <dt>{t("ticket.ended")}</dt>
            <dd data-testid="ticket-ended">
              <Ago at={ended} />
            </dd>
          </>
        )}
        {expires && (
          <>
            <dt>{t("ticket.expires")}</dt>
            <dd>
              <Ago at={expires} />
            </dd>
          </>
        )}
        <dt>{t("ticket.asked")}</dt>
        <dd>
          <Ago at={ticket.createdAt} />
        </dd>
      </dl>
    </section>
  );
}

function Clusters({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const words = useWords();
  // Once it is over, or before anything was read, there is nothing to say of the members.
  if (ticket.clusters.length === 0 && ticket.state !== "pending") return null;
  return (
    <section className={classes.card} aria-label={t("ticket.clusters")}>
      <h2 className={classes.cardTitle}>{t("ticket.clusters")}</h2>
      {ticket.clusters.length === 0 && <p className={classes.later}>{t("ticket.clustersLater")}</p>}
      {ticket.clusters.map((cluster) => (
        <div key={cluster.cluster} className={classes.cluster}>
          <span>{cluster.cluster}</span>
          <ClusterStateBadge state={cluster.state} message={cluster.message} gone={ticket.state === "revoking"} testId={`cluster-state-${cluster.cluster}`} />
          {cluster.message && cluster.state !== "Realized" && <small>{words.said(cluster.message)}</small>}
        </div>
      ))}
    </section>
  );
}

interface Props {
  ticket: Ticket;
  /** The detail stands beside a list. */
  narrow?: boolean;
  onDecided?: () => void;
}

/** Everything about a ticket on one screen. */
export function TicketDetail({ ticket, narrow = false, onDecided }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const waits = ticket.waitingFor ?? [];
  return (
    <div className={narrow ? classes.narrow : undefined} data-testid={`ticket-${ticket.id}`}>
      <div className={classes.state} aria-live="polite">
        <TicketStateBadge state={ticket.state} testId="ticket-state" />
        {ticket.message ? (
          <span className={classes.message} data-testid="ticket-message">{words.said(ticket.message)}</span>
        ) : (
          waits.length > 0 && <span className={classes.message} data-testid="ticket-message">{t("ticket.waitingFor", { clusters: words.list(waits) })}</span>
        )}
      </div>
      <div className={classes.layout}>
        <div>
          <Tabs defaultValue="timeline" keepMounted={false}>
            <Tabs.List mb="md">
              <Tabs.Tab value="timeline">{t("ticket.timeline")}</Tabs.Tab>
              <Tabs.Tab value="statement" data-testid="tab-statement">{t("ticket.statement")}</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="timeline">
              <Timeline ticket={ticket} />
            </Tabs.Panel>
            <Tabs.Panel value="statement">
              {ticket.statement ? <Statement yaml={ticket.statement} label={t("ticket.statement")} /> : <p className={classes.later}>{t("ticket.noStatement")}</p>}
              {ticket.statement && ticket.policy && <p className={classes.later}>{t("ticket.statementOf", { policy: ticket.policy })}</p>}
            </Tabs.Panel>
          </Tabs>
          <DecisionBar ticket={ticket} {...(onDecided ? { onDecided } : {})} />
        </div>
        <div className={classes.side}>
          <Facts ticket={ticket} />
          <Clusters ticket={ticket} />
        </div>
      </div>
    </div>
  );
}
