/** Functions that prepare the details of a ledger line for the pages. */
import type { LedgerLine, Message } from "../api/types";

/** LedgerDetail is one detail of a line. */
export interface LedgerDetail {
  /** The key and the value as they were recorded. */
  key: string;
  value: string;
  /** The name of the key; absent where the key is an identifier. */
  label?: Message;
  /** The value as messages, one for each line; absent for texts that people wrote, identifiers, and texts without a code. */
  texts?: Message[];
  /** ofText reports whether the detail is the code or the parameters of another detail that has texts. */
  ofText: boolean;
}

const suffixes = /^(.+)(?:Code|Params)$/;

/** detailsOf returns the details of a line, in the order of their keys. */
export function detailsOf({ details = {}, labels = {}, texts = {} }: LedgerLine): LedgerDetail[] {
  return Object.keys(details)
    .sort()
    .map((key) => {
      const of = suffixes.exec(key)?.[1];
      const detail: LedgerDetail = { key, value: details[key] ?? "", ofText: of !== undefined && `${of}Code` in details && texts[of] !== undefined };
      const label = labels[key];
      if (label) detail.label = label;
      const lines = texts[key];
      if (lines) detail.texts = lines;
      return detail;
    });
}
