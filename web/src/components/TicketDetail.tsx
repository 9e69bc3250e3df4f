import { Tabs } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import { useMayRequest, useTicketLedger } from "../api/queries";
import type { Ticket } from "../api/types";
import { matterOf } from "../lib/items";
import { useWords } from "../lib/use-words";
import { KindBadge, TicketStateBadge } from "./Badge";
import { TicketChange } from "./Change";
import { CommentBox } from "./CommentBox";
import { DecisionBar } from "./DecisionBar";
import { ErrorState, RowsSkeleton } from "./Feedback";
import { History } from "./History";
import { ItemsTable } from "./ItemsTable";
import { RequestAccessLink } from "./RequestAccessLink";
import classes from "./TicketDetail.module.css";
import { Clusters, Facts } from "./TicketFacts";
import { Timeline } from "./Timeline";

/** Who may not see the ledger's lines is told so by the server; for him there is no such tab. */
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
      {message ? (
        <span className={classes.message} data-testid="ticket-message">{words.said(message)}</span>
      ) : (
        waits.length > 0 && <span className={classes.message} data-testid="ticket-message">{t("ticket.waitingFor", { clusters: words.list(waits) })}</span>
      )}
    </div>
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
  const history = useHistory(ticket.id);
  const says = useMayRequest();
  const [tab, setTab] = useState<string | null>("timeline");
  const [only, ...others] = ticket.items;
  // Who may not end it himself asks those who may.
  const ends = only && others.length === 0 && !ticket.can.revoke && matterOf(ticket.kind) === "access" && only.state === "effective" ? only : undefined;
  const decides = ticket.items.some((item) => item.can.approve || item.can.reject);
  return (
    <div className={narrow ? classes.narrow : undefined} data-testid={`ticket-${ticket.id}`}>
      <State ticket={ticket} />
      <div className={classes.layout}>
        <div className={classes.main}>
          <Tabs value={tab} onChange={setTab} keepMounted={false}>
            <Tabs.List mb="md">
              <Tabs.Tab value="timeline">{t("ticket.timeline")}</Tabs.Tab>
              <Tabs.Tab value="change" data-testid="tab-change">{t("ticket.change")}</Tabs.Tab>
              {history.shown && <Tabs.Tab value="history" data-testid="tab-history">{t("ticket.history")}</Tabs.Tab>}
            </Tabs.List>
            <Tabs.Panel value="timeline">
              {only && others.length === 0 ? <Timeline ticket={ticket} item={only} /> : <ItemsTable ticket={ticket} />}
              {says && !decides && (
                <div className={classes.say}>
                  <CommentBox id={ticket.id} />
                </div>
              )}
            </Tabs.Panel>
            <Tabs.Panel value="change">
              <TicketChange ticket={ticket} />
            </Tabs.Panel>
            <Tabs.Panel value="history">
              {history.query.data ? <History lines={history.query.data.items} /> : history.query.error ? <ErrorState error={history.query.error} onRetry={() => void history.query.refetch()} /> : <RowsSkeleton />}
            </Tabs.Panel>
          </Tabs>
          <DecisionBar ticket={ticket} {...(onDecided ? { onDecided } : {})} />
        </div>
        <div className={classes.side}>
          <Facts ticket={ticket} />
          <Clusters ticket={ticket} />
          {ends && <RequestAccessLink quiet kind="revoke" target={`${ticket.id}/${ends.position}`} label={t("ticket.askEnd")} testId="ask-end" />}
        </div>
      </div>
    </div>
  );
}
