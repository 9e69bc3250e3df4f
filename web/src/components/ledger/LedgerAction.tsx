import type { LedgerLine } from "../../api/types";
import { useWords } from "../../lib/use-words";
import tables from "../Tables.module.css";

/** LedgerAction says what was recorded, with the identifier of the action, which the filter uses. */
export function LedgerAction({ line }: { line: LedgerLine }) {
  const words = useWords();
  return (
    <span className={tables.stack}>
      {line.message && <span>{words.message(line.message)}</span>}
      <code className={tables.code}>{line.action}</code>
    </span>
  );
}
