import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useDecideMany } from "../../api/mutations";
import type { BulkResult, Ticket } from "../../api/types";
import { itemsThatMay } from "../../lib/items";
import { textLimit } from "../../lib/request";
import { useHeading } from "../../lib/use-heading";
import { useWords } from "../../lib/use-words";
import { TicketStateBadge } from "../Badge";
import { ErrorState } from "../Feedback";
import { Sentences } from "../Sentence";
import classes from "./Approvals.module.css";

export type BulkVerb = "approve" | "reject";

function Summary({ tickets, verb }: { tickets: Ticket[]; verb: BulkVerb }) {
  const { t } = useTranslation();
  return (
    <ul className={classes.summary} data-testid="bulk-summary">
      {tickets.map((ticket) => {
        const items = itemsThatMay(ticket, verb);
        return (
          <li key={ticket.id}>
            <small>
              {ticket.id} · {ticket.requester.displayName} · {ticket.reason}
            </small>
            {items.length > 0 ? <Sentences items={items} kind={ticket.kind} limit={50} /> : <p>{t("approvals.nothingLeft")}</p>}
          </li>
        );
      })}
    </ul>
  );
}

/** Each with its own result: some may have changed since they were selected. */
function Results({ result, tickets }: { result: BulkResult; tickets: Ticket[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  return (
    <ul className={classes.summary} data-testid="bulk-results">
      {result.items.map((each) => {
        const ticket = tickets.find(({ id }) => id === each.ticket);
        const item = ticket?.items.find(({ position }) => position === each.item);
        const Icon = each.ok ? IconCheck : IconX;
        return (
          <li key={`${each.ticket}/${each.item ?? ""}`} className={classes.result} data-testid={`result-${each.ticket}`} data-value={each.ok ? "ok" : "refused"}>
            <Icon size={15} className={each.ok ? classes.ok : classes.bad} aria-label={t(each.ok ? "approvals.done" : "approvals.refused")} />
            <span>
              <Link to={`/tickets/${each.ticket}`}>{each.ticket}</Link> {ticket && (item ? heading.item(item, ticket.kind) : heading.ticket(ticket))} {each.state && <TicketStateBadge state={each.state} />}
              {each.problem && <small>{each.problem.code === "stale" ? t("error.stale") : words.said(each.problem.detail ?? each.problem.title)}</small>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

interface Props {
  verb: BulkVerb;
  tickets: Ticket[];
  onClose: (done: boolean) => void;
}

/** Says in full what is about to be decided, decides it, and says what became of each. */
export function Bulk({ verb, tickets, onClose }: Props) {
  const { t } = useTranslation();
  const decide = useDecideMany();
  // What was selected when it was sent: afterwards the list is another one.
  const [shown] = useState(tickets);
  const [comment, setComment] = useState("");
  const [missing, setMissing] = useState(false);
  const result = decide.data;
  const items = shown.reduce((sum, ticket) => sum + itemsThatMay(ticket, verb).length, 0);

  const send = () => {
    const text = comment.trim();
    if (verb === "reject" && text === "") {
      setMissing(true);
      return;
    }
    decide.mutate({ decision: verb, items: shown.map(({ id, version }) => ({ ticket: id, version })), ...(text ? { comment: text } : {}) });
  };
  const close = () => onClose(result !== undefined);

  return (
    <Modal opened onClose={close} size="xl" title={<Text fw={620}>{result ? t("approvals.resultTitle") : t(`approvals.bulk.${verb}`, { count: items })}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <Stack gap="md" data-testid="bulk-dialog">
        {result ? <Results result={result} tickets={shown} /> : <Summary tickets={shown} verb={verb} />}
        {!result && (
          <Textarea
            label={t("decide.comment")}
            description={t("approvals.commentHint")}
            required={verb === "reject"}
            value={comment}
            onChange={(event) => {
              setComment(event.currentTarget.value);
              setMissing(false);
            }}
            error={missing ? t("decide.reasonNeeded") : undefined}
            maxLength={textLimit}
            autosize
            minRows={1}
            maxRows={6}
            data-autofocus
            data-testid="bulk-comment"
          />
        )}
        {decide.error ? <ErrorState error={decide.error} title={t("error.actionTitle")} /> : null}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={close} data-testid="bulk-close">
            {t(result ? "action.close" : "action.cancel")}
          </Button>
          {!result && (
            <Button color={verb === "reject" ? "red" : "accent"} loading={decide.isPending} disabled={items === 0} onClick={send} data-testid="bulk-confirm">
              {t(`decide.${verb}`)}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}
