import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useRevoke } from "../api/mutations";
import { useWords } from "../lib/use-words";
import { ReasonDialog } from "./ReasonDialog";
import { useToast } from "./toast-context";

interface Props {
  ticketId: string;
  application: string;
  resource: string;
  actions: string[];
  clusters: string[];
  onClose: () => void;
}

export function RevokeDialog({ ticketId, application, resource, actions, clusters, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const revoke = useRevoke(ticketId);
  return (
    <ReasonDialog
      title={t("decide.revokeTitle")}
      text={
        <>
          <Text>{t("decide.revokeText", { application, resource, actions: words.list(actions) })}</Text>
          {clusters.length > 0 && <Text c="dimmed" size="sm" mt={4}>{t("decide.revokeClusters", { clusters: words.list(clusters) })}</Text>}
        </>
      }
      confirm={t("decide.revoke")}
      danger
      busy={revoke.isPending}
      error={revoke.error}
      testId="revoke"
      onConfirm={(reason) =>
        revoke.mutate(reason, {
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
