import { Button, Textarea } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { loginTooOld } from "../../api/client";
import { decideTickets, ticketsAtOnce, useDecideMany } from "../../api/mutations";
import type { BulkResult, Ticket } from "../../api/types";
import type { BulkDraft, BulkVerb } from "../../lib/bulk-decision";
import { itemsThatMay } from "../../lib/items";
import { textLimit } from "../../lib/request";
import { useHeading } from "../../lib/use-heading";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { TicketStateBadge } from "../Badge";
import { LoginAgain } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { InfoDialog } from "../InfoDialog";
import { ItemSentences } from "../ItemSentence";
import { SentProgress } from "../SentProgress";
import classes from "./Approvals.module.css";

/** shownTickets is the number of tickets that are described; the others are counted. */
const shownTickets = 200;

function Summary({ tickets, verb }: { tickets: Ticket[]; verb: BulkVerb }) {
  const { t } = useTranslation();
  return (
    <ul className={classes.summary} data-testid="bulk-summary">
      {tickets.slice(0, shownTickets).map((ticket) => {
        const items = itemsThatMay(ticket, verb);
        return (
          <li key={ticket.id}>
            <small>
              {ticket.id} · {ticket.requester.displayName} · {ticket.reason}
            </small>
            {items.length > 0 ? <ItemSentences items={items} kind={ticket.kind} limit={50} /> : <p>{t("approvals.nothingLeft")}</p>}
          </li>
        );
      })}
      {tickets.length > shownTickets && <li>{t("approvals.others", { count: tickets.length - shownTickets })}</li>}
    </ul>
  );
}

/** Results shows the result of each ticket, because some may have changed after they were selected. */
function Results({ results, tickets }: { results: BulkResult["items"]; tickets: Ticket[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  return (
    <ul className={classes.summary} data-testid="bulk-results">
      {results.map((each) => {
        const ticket = tickets.find(({ id }) => id === each.ticket);
        const item = ticket?.items.find(({ position }) => position === each.item);
        const Icon = each.ok ? IconCheck : IconX;
        return (
          <li key={`${each.ticket}/${each.item ?? ""}`} className={classes.result} data-testid={`result-${each.ticket}`} data-value={each.ok ? "ok" : "refused"}>
            <Icon size={15} className={each.ok ? classes.ok : classes.bad} aria-label={t(each.ok ? "approvals.done" : "approvals.refused")} />
            <span>
              <Link to={`/tickets/${each.ticket}`}>{each.ticket}</Link> {ticket && (item ? heading.item(item, ticket.kind) : heading.ticket(ticket))} {each.state && <TicketStateBadge state={each.state} />}
              {each.problem && <small>{each.problem.code === "stale" ? t("error.stale") : words.message(each.problem.message)}</small>}
              {each.problem?.code === loginTooOld && <LoginAgain />}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** useKeepRefused stores the decision about the tickets that need a newer login, so that the dialog is open with them after the login. */
function useKeepRefused(kept: KeptInput, input: BulkDraft, results: BulkResult["items"] | undefined) {
  useEffect(() => {
    const refused = new Set(results?.filter(({ problem }) => problem?.code === loginTooOld).map(({ ticket }) => ticket));
    if (refused.size > 0) kept.save({ ...input, tickets: [...refused] });
  });
}

interface Props {
  verb: BulkVerb;
  tickets: Ticket[];
  /** The input from before a login. */
  draft: BulkDraft | undefined;
  kept: KeptInput;
  onClose: (done: boolean) => void;
}

/** BulkDecisionDialog shows what will be decided, decides it, and shows the result of each item. */
export function BulkDecisionDialog({ verb, tickets, draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const decide = useDecideMany();
  // The selection is copied, because decided tickets leave the list.
  const [shown] = useState(tickets);
  const [comment, setComment] = useState(draft?.comment ?? "");
  const [missing, setMissing] = useState(false);
  const results = decide.data;
  const input: BulkDraft = { verb, tickets: shown.map(({ id }) => id), comment };
  useKeepRefused(kept, input, results);
  const items = shown.reduce((sum, ticket) => sum + itemsThatMay(ticket, verb).length, 0);

  const submit = () => {
    const text = comment.trim();
    if (verb === "reject" && text === "") {
      setMissing(true);
      return false;
    }
    decide.send({
      entries: shown.map(({ id, version }) => ({ ticket: id, version })),
      send: (part) => decideTickets({ decision: verb, items: part, ...(text ? { comment: text } : {}) }),
    });
    return true;
  };

  if (results) {
    return (
      <InfoDialog
        title={t("approvals.resultTitle")}
        size="xl"
        onClose={() => onClose(true)}
        actions={
          <Button variant="default" onClick={() => onClose(true)} data-testid="bulk-close">
            {t("action.close")}
          </Button>
        }
      >
        <Results results={results} tickets={shown} />
      </InfoDialog>
    );
  }

  return (
    <FormDialog
      title={t(`approvals.bulk.${verb}`, { count: items })}
      size="xl"
      testId="bulk-dialog"
      submit={{ label: t(`decide.${verb}`), danger: verb === "reject", disabled: items === 0, testId: "bulk-confirm", onSubmit: submit }}
      pending={decide.isPending}
      error={decide.error}
      values={input}
      kept={kept}
      onClose={() => onClose(false)}
    >
      {(fieldError) => (
        <>
          {shown.length > 0 ? <Summary tickets={shown} verb={verb} /> : <p>{t("approvals.allDecided")}</p>}
          <Textarea
            label={t("decide.comment")}
            description={t("approvals.commentHint")}
            required={verb === "reject"}
            value={comment}
            onChange={(event) => {
              setComment(event.currentTarget.value);
              setMissing(false);
            }}
            error={missing ? t("decide.reasonNeeded") : fieldError("comment")}
            maxLength={textLimit}
            autosize
            minRows={1}
            maxRows={6}
            data-autofocus
            data-testid="bulk-comment"
          />
          <SentProgress progress={decide.progress} size={ticketsAtOnce} />
        </>
      )}
    </FormDialog>
  );
}
