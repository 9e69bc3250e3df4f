import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useDecide } from "../api/mutations";
import type { Ticket } from "../api/types";
import { waitingItems } from "../lib/decision-content";
import { itemsThatMay } from "../lib/items";
import { useKeepForLogin } from "../lib/use-kept-comment";
import type { TicketComment } from "../lib/use-ticket-comment";
import { DecisionForm } from "./DecisionForm";
import classes from "./DecisionBar.module.css";
import { ErrorState } from "./Feedback";
import { ItemSentences } from "./ItemSentence";
import { TicketDialogs } from "./TicketDialogs";
import type { TicketDialog } from "./TicketDialogs";

const buttons = [
  { dialog: "withdraw", variant: "default", color: "accent" },
  { dialog: "extend", variant: "default", color: "accent" },
  { dialog: "revoke", variant: "outline", color: "red" },
  { dialog: "review", variant: "filled", color: "accent" },
] as const satisfies readonly { dialog: TicketDialog; variant: string; color: string }[];

/** DecisionBar offers what the reader can do about the ticket now. It renders nothing if there is no action. */
export function DecisionBar({ ticket, comment, onDecided }: { ticket: Ticket; comment: TicketComment; onDecided?: () => void }) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<TicketDialog>();
  const decide = useDecide(ticket.id);
  useKeepForLogin(ticket.id, comment.text, decide.error);
  const waiting = waitingItems(ticket);
  const decides = waiting.length > 0;
  // The decision failed and another person decided first: the error is shown until the reader leaves the ticket.
  const late = !decides && decide.error !== null;
  // With several items the rows have the buttons of each item, and the bar has those for all items.
  const offered = buttons.filter(({ dialog: each }) => {
    const items = itemsThatMay(ticket, each);
    if (items.length === 0) return false;
    return each === "withdraw" || ticket.items.length === 1 || (!decides && each !== "extend");
  });
  if (!decides && !late && offered.length === 0 && dialog === undefined) return null;
  const why = offered.some((each) => each.dialog === "review") ? "decide.reviews" : offered.some((each) => each.dialog === "revoke") ? "decide.owns" : "decide.requested";

  return (
    <div className={decides ? classes.dock : `${classes.dock} ${classes.later}`}>
      <div className={classes.bar} role="region" aria-label={t("decide.label")} data-testid="decision-bar">
        {decides && <DecisionForm ticket={ticket} items={waiting} decide={decide} comment={comment} onDecided={onDecided} />}
        {late && (
          <>
            <ErrorState error={decide.error} title={t("error.actionTitle")} />
            <small>{t("decide.late")}</small>
          </>
        )}
        {offered.length > 0 && (
          <div className={classes.row}>
            {!decides && (
              <div className={classes.text}>
                <ItemSentences items={ticket.items} kind={ticket.kind} limit={3} />
                <small>{t(why)}</small>
              </div>
            )}
            <div className={classes.buttons}>
              {offered.map(({ dialog: each, variant, color }) => (
                <Button key={each} variant={variant} color={color} onClick={() => setDialog(each)} data-testid={`${each}-button`}>
                  {t(`decide.${each}`)}
                </Button>
              ))}
            </div>
          </div>
        )}
        <TicketDialogs ticket={ticket} dialog={dialog} onClose={() => setDialog(undefined)} />
      </div>
    </div>
  );
}
