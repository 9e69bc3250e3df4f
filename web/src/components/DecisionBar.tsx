import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Ticket } from "../api/types";
import { itemsThatMay } from "../lib/items";
import type { TicketComment } from "../lib/use-ticket-comment";
import { DecisionForm } from "./DecisionForm";
import classes from "./DecisionBar.module.css";
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
  const waiting = ticket.items.filter((item) => item.can.approve || item.can.reject);
  const decides = waiting.length > 0;
  // With several items the rows have the buttons of each item, and the bar has those for all items.
  const offered = buttons.filter(({ dialog: each }) => {
    const items = itemsThatMay(ticket, each);
    if (items.length === 0) return false;
    return each === "withdraw" || ticket.items.length === 1 || (!decides && each !== "extend");
  });
  if (!decides && offered.length === 0 && dialog === undefined) return null;
  const why = offered.some((each) => each.dialog === "review") ? "decide.reviews" : offered.some((each) => each.dialog === "revoke") ? "decide.owns" : "decide.requested";

  return (
    <div className={decides ? classes.dock : `${classes.dock} ${classes.later}`}>
      <div className={classes.bar} role="region" aria-label={t("decide.label")} data-testid="decision-bar">
        {decides && <DecisionForm key={`${ticket.id}-${ticket.version}`} ticket={ticket} items={waiting} comment={comment} onDecided={onDecided} />}
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
