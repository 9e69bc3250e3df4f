import type { Ticket, TicketItem } from "../api/types";
import { itemsThatMay } from "../lib/items";
import { useHeading } from "../lib/use-heading";
import { useKeptDialog } from "../lib/use-kept-dialog";
import { ExtendDialog } from "./ExtendDialog";
import { ReviewDialog } from "./ReviewDialog";
import { RevokeDialog } from "./RevokeDialog";
import type { Revocable } from "./RevokeDialog";
import { WithdrawDialog } from "./WithdrawDialog";

/** TicketDialog is the name of a dialog that an action of a ticket opens. */
export type TicketDialog = "withdraw" | "revoke" | "extend" | "review";

const revocable = (item: TicketItem): Revocable => ({
  application: item.application?.title ?? "",
  resource: item.resource?.title ?? "",
  actions: item.actions ?? [],
  clusters: item.clusters.map((cluster) => cluster.cluster),
});

const isComment = (value: unknown): value is string => typeof value === "string";

/** TicketDialogs shows the chosen dialog for one item, or for all items that it applies to. */
export function TicketDialogs({ ticket, item, dialog, onClose }: { ticket: Ticket; item?: TicketItem | undefined; dialog: TicketDialog | undefined; onClose: () => void }) {
  const heading = useHeading();
  const review = useKeptDialog(`review ${ticket.id} ${item?.position ?? ""}`, isComment);
  const reviewable = item ? item.can.review : itemsThatMay(ticket, "review").length > 0;
  const closeReview = () => {
    review.close();
    onClose();
  };
  // After a login the dialog is open again, unless somebody else has reviewed the access.
  switch (dialog ?? (review.draft !== undefined && reviewable ? "review" : undefined)) {
    case "withdraw":
      return <WithdrawDialog ticket={ticket} onClose={onClose} />;
    case "review":
      return <ReviewDialog ticket={ticket} item={item?.position} draft={review.draft} kept={review.kept} onClose={closeReview} />;
    case "revoke":
      return <RevokeDialog ticketId={ticket.id} item={item?.position} targets={(item ? [item] : itemsThatMay(ticket, "revoke")).map(revocable)} onClose={onClose} />;
    case "extend": {
      const of = item ?? itemsThatMay(ticket, "extend")[0];
      return of ? <ExtendDialog of={{ ticket: ticket.id, item: of.position, heading: heading.item(of, "grant"), reason: ticket.reason }} onClose={onClose} /> : null;
    }
    case undefined:
      return null;
  }
}
