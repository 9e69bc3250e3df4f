import { Button, Tabs } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { asApiError } from "../api/client";
import { useTicketImpact } from "../api/flows";
import { useMayRequest, useMe, useTicketLedger } from "../api/queries";
import type { Ticket } from "../api/types";
import { matterOf } from "../lib/items";
import { useTicketComment } from "../lib/use-ticket-comment";
import { useWords } from "../lib/use-words";
import { KindBadge, SensitivityBadge, TicketStateBadge } from "./Badge";
import { TicketChanges } from "./ObjectChanges";
import { CommentBox } from "./CommentBox";
import { DecisionFacts } from "./DecisionFacts";
import { DecisionBar } from "./DecisionBar";
import { Impact, ImpactAnswer } from "./evidence/Impact";
import { ErrorState, Loaded, RowsSkeleton } from "./Feedback";
import { TicketHistory } from "./TicketHistory";
import { ItemsTable } from "./ItemsTable";
import { LoadMore } from "./LoadMore";
import { RequestAccessLink } from "./RequestAccessLink";
import classes from "./TicketDetail.module.css";
import { TicketClusters, TicketFacts } from "./TicketFacts";
import { Timeline } from "./Timeline";

/** useHistory reads the ledger's lines of the ticket. The server refuses them to some readers, for whom the history tab is not shown. */
function useHistory(id: string) {
  const query = useTicketLedger(id);
  const { status } = asApiError(query.error);
  const hidden = query.error !== null && (status === 403 || status === 404);
  return { query, shown: !hidden && (query.data !== undefined || query.error !== null) };
}

function State({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const words = useWords();
  const only = ticket.items.length === 1 ? ticket.items[0] : undefined;
  const message = ticket.message ?? only?.message;
  const waits = [...new Set(ticket.items.flatMap((item) => item.waitingFor ?? []))].sort();
  return (
    <div className={classes.state} aria-live="polite">
      <TicketStateBadge state={ticket.state} testId="ticket-state" />
      <KindBadge kind={ticket.kind} breakGlass={ticket.breakGlass} />
      {only?.sensitivity && <SensitivityBadge sensitivity={only.sensitivity} />}
      {message ? (
        <span className={classes.message} data-testid="ticket-message">{words.message(message)}</span>
      ) : (
        waits.length > 0 && <span className={classes.message} data-testid="ticket-message">{t("ticket.waitingFor", { clusters: words.list(waits) })}</span>
      )}
    </div>
  );
}

/** replayed returns which change to replay: the requested change until it is applied, and afterwards the end of a grant. */
function replayed(ticket: Ticket): "ticket" | "revoke" | undefined {
  const matter = matterOf(ticket.kind);
  if (matter === "object" && ticket.kind !== "class") return undefined;
  if (["pending", "approved", "applying"].includes(ticket.state)) return "ticket";
  return matter === "access" && ticket.state === "effective" && ticket.can.revoke ? "revoke" : undefined;
}

function TicketImpact({ id, change, ofClass }: { id: string; change: "ticket" | "revoke"; ofClass: boolean }) {
  const { t } = useTranslation();
  const query = useTicketImpact(id, change);
  return (
    <>
      <p className={classes.about}>
        {t(`impact.about.${change}`)} <Link to={`/traffic?${new URLSearchParams({ window: "14d", ticket: id, ...(change === "revoke" ? { change } : {}) }).toString()}`} data-testid="impact-map">{t("impact.map")}</Link>
      </p>
      <Loaded query={query}>{(impact) => <Impact impact={impact} ofClass={ofClass} />}</Loaded>
    </>
  );
}

/** DecidersImpact shows a summary of the effect above all details to the people who decide, or that it is unknown. */
function DecidersImpact({ id, onMore }: { id: string; onMore: () => void }) {
  const { t } = useTranslation();
  const query = useTicketImpact(id, "ticket");
  return (
    <section className={classes.impact} aria-label={t("impact.short")} data-testid="ticket-impact">
      <div className={classes.impactHead}>
        <h3>{t("impact.short")}</h3>
        <button type="button" onClick={onMore}>{t("impact.more")}</button>
      </div>
      <ImpactAnswer query={query} />
    </section>
  );
}

interface Props {
  ticket: Ticket;
  /** narrow reports whether the detail is shown next to a list. */
  narrow?: boolean;
  onDecided?: () => void;
}

/** TicketDetail shows everything about a ticket on one screen. */
export function TicketDetail({ ticket, narrow = false, onDecided }: Props) {
  const { t } = useTranslation();
  const history = useHistory(ticket.id);
  const mayRequest = useMayRequest();
  const [tab, setTab] = useState<string | null>("timeline");
  // The text is kept here, because the fields for it are not shown on each tab and in each state of the ticket.
  const comment = useTicketComment(ticket.id);
  const [only, ...others] = ticket.items;
  // People who may not revoke the grant themselves can request its end.
  const ends = only && others.length === 0 && !ticket.can.revoke && matterOf(ticket.kind) === "access" && only.state === "effective" ? only : undefined;
  // Owners of the resource continue on its page.
  const me = useMe().data?.person.id;
  const closes = ticket.state === "effective" && ticket.requester.id === me && (ticket.adopt || ticket.kind === "mode" || ticket.kind === "onboard") ? only : undefined;
  const decides = ticket.items.some((item) => item.can.approve || item.can.reject);
  const replay = replayed(ticket);
  return (
    <div className={narrow ? classes.narrow : undefined} data-testid={`ticket-${ticket.id}`}>
      <State ticket={ticket} />
      <div className={classes.layout}>
        <div className={classes.main}>
          {decides && replay === "ticket" && <DecidersImpact id={ticket.id} onMore={() => setTab("impact")} />}
          <DecisionFacts id={ticket.id} items={ticket.items} />
          {ticket.override && (
            <div className={classes.override} role="note" data-testid="override">
              <strong>{t("override.ticket")}</strong> {ticket.override.reason}
            </div>
          )}
          {ticket.adopt && <p className={classes.about} data-testid="adopt-note">{t("proposal.ticket")}</p>}
          <Tabs value={replay === undefined && tab === "impact" ? "timeline" : tab} onChange={setTab} keepMounted={false}>
            <Tabs.List mb="md">
              <Tabs.Tab value="timeline">{t("ticket.timeline")}</Tabs.Tab>
              <Tabs.Tab value="change" data-testid="tab-change">{t("ticket.change")}</Tabs.Tab>
              {replay && <Tabs.Tab value="impact" data-testid="tab-impact">{t(`impact.tab.${replay}`)}</Tabs.Tab>}
              {history.shown && <Tabs.Tab value="history" data-testid="tab-history">{t("ticket.history")}</Tabs.Tab>}
            </Tabs.List>
            <Tabs.Panel value="timeline">
              {only && others.length === 0 ? <Timeline ticket={ticket} item={only} /> : <ItemsTable ticket={ticket} />}
              {mayRequest && !decides && (
                <div className={classes.say}>
                  <CommentBox comment={comment} />
                </div>
              )}
            </Tabs.Panel>
            <Tabs.Panel value="change">
              <TicketChanges ticket={ticket} />
            </Tabs.Panel>
            {replay && (
              <Tabs.Panel value="impact">
                <TicketImpact id={ticket.id} change={replay} ofClass={ticket.kind === "class"} />
              </Tabs.Panel>
            )}
            <Tabs.Panel value="history">
              {history.query.data ? (
                <>
                  <TicketHistory lines={history.query.data.pages.flatMap((page) => page.items)} partial={history.query.hasNextPage} />
                  <LoadMore query={history.query} param="history-pages" />
                </>
              ) : history.query.error ? (
                <ErrorState error={history.query.error} onRetry={() => void history.query.refetch()} />
              ) : (
                <RowsSkeleton />
              )}
            </Tabs.Panel>
          </Tabs>
          <DecisionBar ticket={ticket} comment={comment} {...(onDecided ? { onDecided } : {})} />
        </div>
        <div className={classes.side}>
          <TicketFacts ticket={ticket} />
          <TicketClusters ticket={ticket} />
          {closes?.resource?.id && (
            <Button component={Link} size="compact-sm" variant="light" to={`/resources/${encodeURIComponent(closes.resource.id)}`} data-testid="next-step-of">
              {t("ticket.nextStep", { resource: closes.resource.title })}
            </Button>
          )}
          {ends && <RequestAccessLink quiet kind="revoke" target={`${ticket.id}/${ends.position}`} label={t("ticket.askEnd")} testId="ask-end" />}
        </div>
      </div>
    </div>
  );
}
