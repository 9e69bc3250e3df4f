import { Checkbox } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ProposalLine } from "../../api/types";
import { proposalCSV } from "../../lib/csv-tables";
import { isAdoptable, lineKey } from "../../lib/proposal";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { Owners, RefName } from "../Names";
import tables from "../Tables.module.css";
import classes from "./Evidence.module.css";
import { EvidenceSummary } from "./EvidenceSummary";

const signs = { covered: "=", new: "+", audited: "+", denied: "−" } as const;
const tones = { covered: "idle", new: "busy", audited: "warn", denied: "bad" } as const;

interface Props {
  label: string;
  lines: ProposalLine[];
  /** Absent if lines cannot be selected. */
  chosen?: ReadonlySet<string>;
  onToggle?: (key: string) => void;
}

/** ProposalTable lists the policy lines that the observed traffic needs, as a difference to the existing ones, each with its evidence. */
export function ProposalTable({ label, lines, chosen, onToggle }: Props) {
  const { t } = useTranslation();
  const columns: Column<ProposalLine>[] = [
    {
      key: "subject",
      header: t("connections.peerApplication"),
      cell: (line) => (
        <span className={tables.stack}>
          <span>
            <span className={classes.sign} data-state={line.state} aria-hidden>{signs[line.state]} </span>
            <RefName kind="applications" about={line.subject} />
          </span>
          {line.owners && line.owners.length > 0 && <span className={tables.muted}><Owners owners={line.owners} /></span>}
        </span>
      ),
    },
    { key: "action", header: t("connections.action"), cell: (line) => <code className={tables.code}>{line.action}</code> },
    {
      key: "state",
      header: t("proposal.stateColumn"),
      cell: (line) => (
        <span className={tables.stack}>
          <span><ToneBadge tone={tones[line.state]} word={t(`proposal.state.${line.state}`)} help={t(`proposal.stateHelp.${line.state}`)} testId="proposal-state" value={line.state} /></span>
          {line.state !== "covered" && !isAdoptable(line) && <span className={tables.why}>{t("proposal.notGrantable")}</span>}
        </span>
      ),
    },
    { key: "evidence", header: t("evidence.title"), cell: (line) => <EvidenceSummary evidence={line.evidence} /> },
  ];
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
  return <DataTable label={label} columns={columns} rows={lines} rowKey={lineKey} rowTestId={() => "proposal-line"} testId="proposal-table" csv={proposalCSV} />;
}
