import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useNotifyClient } from "../../api/flow-mutations";
import type { ProposalLine, Resource } from "../../api/types";
import { lineKey } from "../../lib/proposal";
import { ReasonDialog } from "../ReasonDialog";
import tables from "../Tables.module.css";
import { useToast } from "../toast-context";
import { EvidenceSummary } from "./EvidenceSummary";

interface Props {
  resource: Resource;
  line: ProposalLine;
  /** All lines of the client that nothing allows. The notice is about all of them. */
  lines: ProposalLine[];
  /** The beginning of the window that is shown, if the reader chose one. */
  since: string | undefined;
  onClose: () => void;
}

/** ClientNoticeDialog notifies the owners of an application that the owner of a resource does not want to grant its access. */
export function ClientNoticeDialog({ resource, line, lines, since, onClose }: Props) {
  const { t } = useTranslation();
  const toast = useToast();
  const notify = useNotifyClient(resource.id);
  const { id = "", title } = line.subject;
  return (
    <ReasonDialog
      title={t("proposal.notice.title", { subject: title })}
      text={
        <>
          <Text size="sm">{t("proposal.notice.text", { resource: resource.title })}</Text>
          <Text size="sm" mt="xs">{t("proposal.notice.actions")}</Text>
          <ul style={{ margin: 0, paddingInlineStart: 18, maxHeight: 180, overflowY: "auto" }}>
            {lines.map((each) => (
              <li key={lineKey(each)}>
                <code className={tables.code}>{each.action}</code> <EvidenceSummary evidence={each.evidence} />
              </li>
            ))}
          </ul>
        </>
      }
      confirm={t("proposal.notice.confirm")}
      pending={notify.isPending}
      error={notify.error}
      testId="client-notice"
      onConfirm={(reason) =>
        notify.mutate(
          { application: id, reason, ...(since ? { since } : {}) },
          {
            onSuccess: ({ recipients }) => {
              toast(t("proposal.notice.sent", { count: recipients }));
              onClose();
            },
          },
        )
      }
      onClose={onClose}
    />
  );
}
