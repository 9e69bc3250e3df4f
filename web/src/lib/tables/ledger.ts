/** Tables of the ledger, as files. */
import type { LedgerLine, LedgerVerification } from "../../api/types";
import type { CsvTable } from "../csv";
import { person } from "./cells";

/** ledgerLinesCSV is the table of the ledger. It is no evidence: `kubectl acp ledger export` writes lines that can be verified. */
export const ledgerLinesCSV: CsvTable<LedgerLine> = {
  file: "ledger",
  columns: {
    line: (row) => row.seq,
    at: (row) => row.at,
    by: (row) => person(row.actor),
    action: (row) => row.action,
    text: (row) => row.message?.text,
    object: (row) => row.object,
    details: (row) => Object.entries(row.details ?? {}).map(([key, value]) => `${key}=${value}`),
    hash: (row) => row.hash,
  },
};

/** LedgerAnchor is the comparison of the ledger with one anchor. */
export type LedgerAnchor = NonNullable<LedgerVerification["anchors"]>[number];

/** ledgerAnchorsCSV is the table of the anchors with which the ledger was compared. */
export const ledgerAnchorsCSV: CsvTable<LedgerAnchor> = {
  file: "ledger-anchors",
  columns: {
    anchor: (row) => row.anchor,
    line: (row) => row.seq,
    at: (row) => row.at,
    agrees: (row) => row.matches,
    message: (row) => row.message?.text,
  },
};
