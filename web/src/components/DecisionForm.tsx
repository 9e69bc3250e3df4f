import { Button, Select, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import { useDecide } from "../api/mutations";
import { useMe } from "../api/queries";
import type { Ticket, TicketItem } from "../api/types";
import { currentStep, votesOf } from "../lib/items";
import { clearComment } from "../lib/comment-draft";
import { textLimit } from "../lib/request";
import { useHeading } from "../lib/use-heading";
import { useKeepForLogin } from "../lib/use-kept-comment";
import type { TicketComment } from "../lib/use-ticket-comment";
import { useWords } from "../lib/use-words";
import classes from "./DecisionBar.module.css";
import { ErrorState } from "./Feedback";
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

interface Props {
  ticket: Ticket;
  items: TicketItem[];
  comment: TicketComment;
  onDecided?: (() => void) | undefined;
}

/** DecisionForm approves or rejects all items that wait for the reader, or one of them. It shows in words what is decided. */
export function DecisionForm({ ticket, items, comment: { text: comment, setText: setComment, send: sendComment, pending: commenting, error: commentError }, onDecided }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const heading = useHeading();
  const toast = useToast();
  const decide = useDecide(ticket.id);
  useKeepForLogin(ticket.id, comment, decide.error);
  const [missing, setMissing] = useState(false);
  const [chosen, setChosen] = useState(everything);
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
        onSuccess: () => {
          toast(t(`decide.done.${decision}`, { id: ticket.id }));
          setComment("");
          clearComment();
          onDecided?.();
        },
      },
    );
  };
  const only = () => {
    if (need() !== undefined) sendComment();
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
          onChange={(value) => setChosen(value ?? everything)}
          data-testid="decision-about"
        />
      )}
      <div className={classes.text}>
        <ItemSentences items={about} kind={ticket.kind} limit={3} />
        {first && <DecisionCapacity item={first} />}
      </div>
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
            <Button variant="default" onClick={() => send("reject")} loading={busy("reject")} disabled={decide.isPending} data-testid="reject-button">
              {t("decide.reject")}
            </Button>
          )}
          {about.some((item) => item.can.approve) && (
            <Button onClick={() => send("approve")} loading={busy("approve")} disabled={decide.isPending} data-testid="approve-button">
              {t("decide.approve")}
            </Button>
          )}
        </div>
      </div>
    </>
  );
}
