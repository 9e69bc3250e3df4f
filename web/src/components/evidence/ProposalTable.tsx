import { Checkbox } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ProposalLine } from "../../api/types";
import { proposalCSV } from "../../lib/tables/rollout";
import { isAdoptable, lineKey } from "../../lib/proposal";
import { instant } from "../../lib/table-sort";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { Owners, RefName } from "../Names";
import tables from "../Tables.module.css";
import classes from "./Evidence.module.css";
import { ClientNoticeCell } from "./ClientNoticeCell";
import { EvidenceSummary } from "./EvidenceSummary";
import { NewSinceReview } from "./NewSinceReview";

const signs = { covered: "=", new: "+", audited: "+", denied: "−" } as const;
const tones = { covered: "idle", new: "busy", audited: "warn", denied: "bad" } as const;

interface Props {
  label: string;
  lines: ProposalLine[];
  /** Absent if lines cannot be selected. */
  chosen?: ReadonlySet<string>;
  onToggle?: (key: string) => void;
  /** Begins a notice to the owners of the line's client. Absent if no line of the table can have one. */
  onNotify?: (line: ProposalLine) => void;
  /** The URL's parameter with the sort. */
  sortParam: string;
}

/** ProposalTable lists the policy lines that the observed traffic needs, as a difference to the existing ones, each with its evidence. */
export function ProposalTable({ label, lines, chosen, onToggle, onNotify, sortParam }: Props) {
  const { t } = useTranslation();
  const columns: Column<ProposalLine>[] = [
    {
      key: "subject",
      header: t("connections.peerApplication"),
      sortBy: (line) => line.subject.title,
      cell: (line) => (
        <span className={tables.stack}>
          <span>
            <span className={classes.sign} data-state={line.state} aria-hidden>{signs[line.state]} </span>
            <RefName kind="applications" about={line.subject} />
          </span>
          {line.owners && line.owners.length > 0 && <span className={tables.muted}><Owners owners={line.owners} /></span>}
          <NewSinceReview is={line.newSinceReview} />
        </span>
      ),
    },
    { key: "action", header: t("connections.action"), sortBy: (line) => line.action, cell: (line) => <code className={tables.code}>{line.action}</code> },
    {
      key: "state",
      header: t("proposal.stateColumn"),
      sortBy: (line) => line.state,
      cell: (line) => (
        <span className={tables.stack}>
          <span><ToneBadge tone={tones[line.state]} word={t(`proposal.state.${line.state}`)} help={t(`proposal.stateHelp.${line.state}`)} testId="proposal-state" value={line.state} /></span>
          {line.state !== "covered" && !isAdoptable(line) && <span className={tables.why} data-testid="not-adoptable">{t(line.state === "denied" && line.subject.id !== undefined ? "proposal.notProposed" : "proposal.notGrantable")}</span>}
        </span>
      ),
    },
    { key: "evidence", header: t("evidence.title"), sortBy: (line) => instant(line.evidence.lastSeen), cell: (line) => <EvidenceSummary evidence={line.evidence} /> },
  ];
  if (lines.some((line) => line.notice !== undefined || (onNotify !== undefined && line.canNotify))) {
    columns.push({ key: "notice", header: t("proposal.notice.column"), end: true, cell: (line) => <ClientNoticeCell line={line} onNotify={onNotify} /> });
  }
  if (chosen && onToggle) {
    columns.unshift({
      key: "choose",
      header: t("proposal.choose"),
      silent: true,
      cell: (line) =>
        isAdoptable(line) ? (
          <Checkbox size="sm" checked={chosen.has(lineKey(line))} onChange={() => onToggle(lineKey(line))} aria-label={t("proposal.chooseOf", { subject: line.subject.title, action: line.action })} data-testid={`choose-${line.subject.id}`} />
        ) : null,
    });
  }
  return <DataTable label={label} columns={columns} rows={lines} rowKey={lineKey} rowTestId={() => "proposal-line"} testId="proposal-table" csv={proposalCSV} sortParam={sortParam} />;
}
