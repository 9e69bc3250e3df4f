import { Button, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { Trans, useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import { useDecide, useWithdraw } from "../api/mutations";
import type { Ticket } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "./DecisionBar.module.css";
import { ErrorState } from "./Feedback";
import { ReasonDialog } from "./ReasonDialog";
import { RevokeDialog } from "./RevokeDialog";
import { useToast } from "./toast-context";

/** What is decided, in one sentence: the bar and the dialogs say the same. */
function Sentence({ ticket }: { ticket: Ticket }) {
  const words = useWords();
  const item = ticket.items[0];
  if (!item) return null;
  return (
    <Trans
      i18nKey="decide.lets"
      values={{ application: item.application.title, resource: item.resource.title, actions: words.list(item.actions), duration: words.lasting(ticket.durationSeconds) }}
      components={{ b: <strong /> }}
    />
  );
}

function Decide({ ticket, onDecided }: { ticket: Ticket; onDecided?: (() => void) | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const decide = useDecide(ticket.id);
  const [comment, setComment] = useState("");
  const [missing, setMissing] = useState(false);
  const input = useRef<HTMLTextAreaElement>(null);
  const step = ticket.steps.find((each) => each.state === "current");

  const send = (decision: "approve" | "reject") => {
    const text = comment.trim();
    if (decision === "reject" && text === "") {
      setMissing(true);
      input.current?.focus();
      return;
    }
    decide.mutate(
      { decision, version: ticket.version, ...(text === "" ? {} : { comment: text }) },
      {
        onSuccess: () => {
          toast(t(`decide.done.${decision}`, { id: ticket.id }));
          setComment("");
          onDecided?.();
        },
      },
    );
  };
  const busy = (decision: string) => decide.isPending && decide.variables.decision === decision;
  const fieldError = decide.error ? asApiError(decide.error).fieldMessage("comment") : undefined;

  return (
    <>
      <div className={classes.text}>
        <Sentence ticket={ticket} />
        {step && <small>{t("decide.asStep", { step: words.step(step.name) })}</small>}
      </div>
      {decide.error && !fieldError ? <ErrorState error={decide.error} title={t("error.actionTitle")} /> : null}
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
          maxLength={2000}
          autosize
          minRows={1}
          maxRows={6}
          data-testid="decision-comment"
        />
        <div className={classes.buttons}>
          {ticket.can.reject && (
            <Button variant="default" onClick={() => send("reject")} loading={busy("reject")} disabled={decide.isPending} data-testid="reject-button">
              {t("decide.reject")}
            </Button>
          )}
          {ticket.can.approve && (
            <Button onClick={() => send("approve")} loading={busy("approve")} disabled={decide.isPending} data-testid="approve-button">
              {t("decide.approve")}
            </Button>
          )}
        </div>
      </div>
    </>
  );
}

function Withdraw({ ticket, onClose }: { ticket: Ticket; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const withdraw = useWithdraw(ticket.id);
  return (
    <ReasonDialog
      title={t("decide.withdrawTitle", { id: ticket.id })}
      text={t("decide.withdrawText")}
      confirm={t("decide.withdraw")}
      busy={withdraw.isPending}
      error={withdraw.error}
      testId="withdraw"
      onConfirm={(reason) =>
        withdraw.mutate(reason, {
          onSuccess: () => {
            toast(t("decide.done.withdraw", { id: ticket.id }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

/** For whom the ticket concerns: what he can do about it now. Absent when that is nothing. */
export function DecisionBar({ ticket, onDecided }: { ticket: Ticket; onDecided?: () => void }) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<"withdraw" | "revoke">();
  const { can } = ticket;
  const decides = can.approve || can.reject;
  const item = ticket.items[0];
  if (!item || (!decides && !can.withdraw && !can.revoke && dialog === undefined)) return null;

  return (
    <div className={classes.bar} role="region" aria-label={t("decide.label")} data-testid="decision-bar">
      {decides && <Decide key={`${ticket.id}-${ticket.version}`} ticket={ticket} onDecided={onDecided} />}
      {!decides && (
        <div className={classes.row}>
          <div className={classes.text}>
            <Sentence ticket={ticket} />
            <small>{can.revoke ? t("decide.owns") : t("decide.asked")}</small>
          </div>
          <div className={classes.buttons}>
            {can.withdraw && (
              <Button variant="default" onClick={() => setDialog("withdraw")} data-testid="withdraw-button">
                {t("decide.withdraw")}
              </Button>
            )}
            {can.revoke && (
              <Button variant="outline" color="red" onClick={() => setDialog("revoke")} data-testid="revoke-button">
                {t("decide.revoke")}
              </Button>
            )}
          </div>
        </div>
      )}
      {dialog === "withdraw" && <Withdraw ticket={ticket} onClose={() => setDialog(undefined)} />}
      {dialog === "revoke" && (
        <RevokeDialog
          ticketId={ticket.id}
          application={item.application.title}
          resource={item.resource.title}
          actions={item.actions}
          clusters={ticket.clusters.map((cluster) => cluster.cluster)}
          onClose={() => setDialog(undefined)}
        />
      )}
    </div>
  );
}
