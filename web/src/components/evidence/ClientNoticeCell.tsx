import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ProposalLine } from "../../api/types";
import { PersonName } from "../Names";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";

interface Props {
  line: ProposalLine;
  onNotify: ((line: ProposalLine) => void) | undefined;
}

/** ClientNoticeCell shows who notified the owners of a line's client and when, or the button that does. */
export function ClientNoticeCell({ line, onNotify }: Props) {
  const { t } = useTranslation();
  const { notice, canNotify, subject } = line;
  return (
    <span className={tables.stack}>
      {notice && (
        <span className={tables.muted} title={notice.reason} data-testid="client-notice">
          {t("proposal.notice.told")} <RelativeTime at={notice.at} /> {t("proposal.notice.by")} <PersonName person={notice.by} />
        </span>
      )}
      {onNotify && canNotify && (
        <span>
          <Button size="compact-sm" variant="default" onClick={() => onNotify(line)} aria-label={t("proposal.notice.sendOf", { subject: subject.title })} data-testid={`notify-${subject.id}`}>
            {t(notice ? "proposal.notice.again" : "proposal.notice.send")}
          </Button>
        </span>
      )}
    </span>
  );
}
