import { useTranslation } from "react-i18next";
import { useWithdraw } from "../api/mutations";
import type { Ticket } from "../api/types";
import { ReasonDialog } from "./ReasonDialog";
import { useToast } from "./toast-context";

/** WithdrawDialog withdraws a ticket with a reason. */
export function WithdrawDialog({ ticket, onClose }: { ticket: Ticket; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const withdraw = useWithdraw(ticket.id);
  return (
    <ReasonDialog
      title={t("decide.withdrawTitle", { id: ticket.id })}
      text={t("decide.withdrawText")}
      confirm={t("decide.withdraw")}
      pending={withdraw.isPending}
      error={withdraw.error}
      testId="withdraw"
      onConfirm={(reason) =>
        withdraw.mutate({ reason }, {
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
