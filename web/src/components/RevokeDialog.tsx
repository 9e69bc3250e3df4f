import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useTicketImpact } from "../api/flows";
import { useRevoke } from "../api/mutations";
import { useWords } from "../lib/use-words";
import { ImpactAnswer } from "./evidence/Impact";
import { ReasonDialog } from "./ReasonDialog";
import { useToast } from "./toast-context";

/** Revocable is a grant as the dialog names it: the application, the resource, the actions and the members. */
export interface Revocable {
  application: string;
  resource: string;
  actions: string[];
  clusters: string[];
}

interface Props {
  ticketId: string;
  /** Absent for all items that can be revoked. */
  item?: number | undefined;
  targets: Revocable[];
  onClose: () => void;
}

/** RevokeDialog revokes one item of a ticket or the whole ticket, with a reason, after showing the impact. */
export function RevokeDialog({ ticketId, item, targets, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const revoke = useRevoke(ticketId);
  const impact = useTicketImpact(ticketId, "revoke");
  const clusters = [...new Set(targets.flatMap((target) => target.clusters))].sort();
  return (
    <ReasonDialog
      title={t("decide.revokeTitle", { count: targets.length })}
      text={
        <>
          {targets.map((target) => (
            <Text key={`${target.application}/${target.resource}`}>{t("decide.revokeText", { application: target.application, resource: target.resource, actions: words.list(target.actions) })}</Text>
          ))}
          <Text c="dimmed" size="sm" mt={4}>{t("decide.revokeExtensions")}</Text>
          <div style={{ marginTop: 10 }} data-testid="revoke-impact">
            {/* The server replays the end of the whole ticket, so the effect of one item may be smaller. */}
            {item !== undefined && <Text size="sm">{t("decide.revokeImpactOf", { id: ticketId })}</Text>}
            <ImpactAnswer query={impact} />
          </div>
          {clusters.length > 0 && <Text c="dimmed" size="sm" mt={4}>{t("decide.revokeClusters", { clusters: words.list(clusters) })}</Text>}
        </>
      }
      confirm={t("decide.revoke")}
      danger
      pending={revoke.isPending}
      error={revoke.error}
      testId="revoke"
      onConfirm={(reason) =>
        revoke.mutate({ reason, item }, {
          onSuccess: () => {
            toast(t("decide.done.revoke", { id: ticketId }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}
