import { Button, Select, Textarea } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import type { useDecide } from "../api/mutations";
import { useMe } from "../api/queries";
import type { Ticket, TicketItem } from "../api/types";
import { clearComment } from "../lib/comment-draft";
import { decisionContent } from "../lib/decision-content";
import { currentStep, votesOf } from "../lib/items";
import { textLimit } from "../lib/request";
import { useHeading } from "../lib/use-heading";
import type { TicketComment } from "../lib/use-ticket-comment";
import { useWords } from "../lib/use-words";
import classes from "./DecisionBar.module.css";
import { ErrorState, Notice } from "./Feedback";
import { ItemSentences } from "./ItemSentence";
import { useToast } from "./toast-context";

const everything = "all";

/** DecisionCapacity shows in whose place the reader decides, and how many approvals the step has. */
function DecisionCapacity({ item }: { item: TicketItem }) {
  const { t } = useTranslation();
  const words = useWords();
  const me = useMe().data?.person.id;
  const step = currentStep(item);
  if (!step) return null;
  const { has, needs } = votesOf(step);
  // Of a limited step, the portal names those who can decide in their own name.
  const own = me === undefined || (step.onCall?.people ?? step.approvers).some((person) => person.id === me);
  return (
    <small>
      {t(own ? "decide.asStep" : "decide.asDelegate", { step: words.step(step.name) })} {needs > 1 && t("timeline.quorum", { has, needs, of: step.approversTotal ?? step.approvers.length })}
    </small>
  );
}

/** Seen is a version of the ticket that the reader saw, and what they would have decided about in it. */
interface Seen {
  version: number;
  content: string;
}

const seenOf = (ticket: Ticket): Seen => ({ version: ticket.version, content: decisionContent(ticket) });

/**
 * useSeen compares the ticket that is shown now with the one that the reader saw. The server refuses a decision about another version than the current
 * one, so that nobody approves what they did not see. The page shows each new version at once, so the shown version alone does not protect a
 * person who is about to press a button: therefore a change of what is decided blocks the decision until the person has continued with it.
 * Every other change is only reported, and the decision is about the version that is shown.
 */
function useSeen(ticket: Ticket) {
  const shown = useMemo(() => seenOf(ticket), [ticket]);
  const [seen, setSeen] = useState(shown);
  const changed = shown.content !== seen.content;
  return {
    changed,
    entries: !changed && shown.version > seen.version,
    proceed: () => setSeen(shown),
    /** decided records the answer to the reader's own decision. */
    decided: (answer: Ticket) => setSeen(seenOf(answer)),
    /** commented records the answer to the reader's own comment. It keeps the content, because the answer may contain changes of others. */
    commented: ({ version }: Ticket) => setSeen(({ content }) => ({ version, content })),
  };
}

interface Props {
  ticket: Ticket;
  items: TicketItem[];
  decide: ReturnType<typeof useDecide>;
  comment: TicketComment;
  onDecided?: (() => void) | undefined;
}

/** DecisionForm approves or rejects all items that wait for the reader, or one of them. It shows in words what is decided. */
export function DecisionForm({ ticket, items, decide, comment: { text: comment, setText: setComment, send: sendComment, pending: commenting, error: commentError }, onDecided }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  const toast = useToast();
  const seen = useSeen(ticket);
  const [missing, setMissing] = useState(false);
  const [choice, setChoice] = useState(everything);
  // An item that does not wait for the reader any more cannot be chosen.
  const chosen = items.some((item) => String(item.position) === choice) ? choice : everything;
  const input = useRef<HTMLTextAreaElement>(null);
  const about = items.filter((item) => chosen === everything || String(item.position) === chosen);
  const [first] = about;

  const need = (): string | undefined => {
    const text = comment.trim();
    setMissing(text === "");
    if (text === "") input.current?.focus();
    return text || undefined;
  };
  const send = (decision: "approve" | "reject") => {
    const text = decision === "reject" ? need() : comment.trim();
    if (text === undefined) return;
    decide.mutate(
      { decision, version: ticket.version, item: chosen === everything ? undefined : Number(chosen), ...(text === "" ? {} : { comment: text }) },
      {
        onSuccess: (answer) => {
          seen.decided(answer);
          toast(t(`decide.done.${decision}`, { id: ticket.id }));
          setComment("");
          clearComment();
          onDecided?.();
        },
      },
    );
  };
  const only = () => {
    if (need() !== undefined) sendComment(seen.commented);
  };
  const busy = (decision: string) => decide.isPending && decide.variables.decision === decision;
  const error = decide.error ?? commentError;
  const refusal = error ? asApiError(error).fieldMessage("comment") : undefined;
  const fieldError = refusal === undefined ? undefined : words.message(refusal);

  return (
    <>
      {items.length > 1 && (
        <Select
          size="xs"
          label={t("decide.about")}
          allowDeselect={false}
          data={[{ value: everything, label: t("decide.aboutAll", { count: items.length }) }, ...items.map((item) => ({ value: String(item.position), label: heading.item(item, ticket.kind) }))]}
          value={chosen}
          onChange={(value) => setChoice(value ?? everything)}
          data-testid="decision-about"
        />
      )}
      <div className={classes.text}>
        <ItemSentences items={about} kind={ticket.kind} limit={3} />
        {first && <DecisionCapacity item={first} />}
      </div>
      {seen.changed && !decide.isPending && (
        <Notice live testId="decision-changed">
          {t("decide.changed")}{" "}
          <Button size="compact-xs" variant="default" onClick={seen.proceed} data-testid="decision-continue">
            {t("decide.proceed")}
          </Button>
        </Notice>
      )}
      {seen.entries && !decide.isPending && (
        <Notice live testId="decision-entries">
          {t("decide.entries")}
        </Notice>
      )}
      {error && !fieldError ? <ErrorState error={error} title={t("error.actionTitle")} /> : null}
      <div className={classes.row}>
        <Textarea
          ref={input}
          className={classes.comment}
          aria-label={t("decide.comment")}
          placeholder={t("decide.commentHint")}
          value={comment}
          onChange={(event) => {
            setComment(event.currentTarget.value);
            setMissing(false);
          }}
          error={missing ? t("decide.rejectNeedsComment", { name: ticket.requester.displayName }) : fieldError}
          maxLength={textLimit}
          autosize
          minRows={1}
          maxRows={6}
          data-testid="decision-comment"
        />
        <div className={classes.buttons}>
          {comment.trim() !== "" && (
            <Button variant="subtle" color="gray" onClick={only} loading={commenting} data-testid="comment-only">
              {t("comment.only")}
            </Button>
          )}
          {about.some((item) => item.can.reject) && (
            <Button variant="default" onClick={() => send("reject")} loading={busy("reject")} disabled={decide.isPending || seen.changed} data-testid="reject-button">
              {t("decide.reject")}
            </Button>
          )}
          {about.some((item) => item.can.approve) && (
            <Button onClick={() => send("approve")} loading={busy("approve")} disabled={decide.isPending || seen.changed} data-testid="approve-button">
              {t("decide.approve")}
            </Button>
          )}
        </div>
      </div>
    </>
  );
}
