/** Parses workloads from a CSV or JSON text. Pure; the server validates all of them again. */
import type { Workload } from "../api/types";

/** FileProblem is the reason why a file cannot be read, as a key of the texts with its values. */
export type FileProblem =
  | { key: "nothing" | "list" }
  | { key: "json"; reason: string }
  | { key: "columns"; columns: string }
  | { key: "quote"; line: number }
  | { key: "cells"; line: number; has: number; wants: number }
  | { key: "row"; row: number; field: string };

/** FileResult contains the workloads of a file, or the reason why it cannot be read. */
export type FileResult = { items: Workload[]; problem?: undefined } | { items?: undefined; problem: FileProblem };

interface Row {
  line: number;
  cells: string[];
}

/**
 * csvRows parses rows of RFC 4180: cells may be quoted, and a quoted cell may contain commas, line ends and doubled quotes. If a quote is not closed, it
 * returns the line of the quote.
 */
export function csvRows(text: string): Row[] | { unclosed: number } {
  const rows: Row[] = [];
  let cells: string[] = [];
  let cell = "";
  let quotedAt = 0;
  let [line, start] = [1, 1];
  const endRow = () => {
    cells.push(cell);
    // A line of nothing is no row.
    if (cells.length > 1 || cells[0] !== "") rows.push({ line: start, cells });
    cells = [];
    cell = "";
    start = line;
  };
  const all = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  for (let i = 0; i < all.length; i++) {
    const char = all[i];
    if (char === "\n") line++;
    if (quotedAt > 0) {
      if (char !== '"') cell += char;
      else if (all[i + 1] === '"') cell += all[i++];
      else quotedAt = 0;
    } else if (char === '"' && cell === "") quotedAt = line;
    else if (char === ",") {
      cells.push(cell);
      cell = "";
    } else if (char === "\n") endRow();
    else cell += char;
  }
  if (quotedAt > 0) return { unclosed: quotedAt };
  endRow();
  return rows;
}

const split = (text: string) => text.split(";").map((each) => each.trim()).filter((each) => each !== "");

function workload(id: string, subject: string, addresses: string[], description: string, row: number): Workload | FileProblem {
  if (id === "") return { key: "row", row, field: "id" };
  if (subject === "") return { key: "row", row, field: "subject" };
  if (addresses.length === 0) return { key: "row", row, field: "addresses" };
  return { id, subject, addresses, ...(description ? { description } : {}) };
}

function collect(found: (Workload | FileProblem)[]): FileResult {
  const items: Workload[] = [];
  for (const each of found) {
    if ("key" in each) return { problem: each };
    items.push(each);
  }
  return items.length === 0 ? { problem: { key: "nothing" } } : { items };
}

function fromCSV(text: string): FileResult {
  const rows = csvRows(text);
  if ("unclosed" in rows) return { problem: { key: "quote", line: rows.unclosed } };
  const [head, ...body] = rows;
  const names = head?.cells.map((name) => name.trim().toLowerCase()) ?? [];
  const missing = ["id", "subject", "addresses"].filter((name) => !names.includes(name));
  if (missing.length > 0) return { problem: { key: "columns", columns: missing.join(", ") } };
  const ragged = body.find(({ cells }) => cells.length !== names.length);
  if (ragged) return { problem: { key: "cells", line: ragged.line, has: ragged.cells.length, wants: names.length } };
  const cell = ({ cells }: Row, name: string) => cells[names.indexOf(name)]?.trim() ?? "";
  return collect(body.map((row, index) => workload(cell(row, "id"), cell(row, "subject"), split(cell(row, "addresses")), cell(row, "description"), index + 1)));
}

const word = (value: unknown) => (typeof value === "string" ? value.trim() : "");

function fromJSON(text: string): FileResult {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    return { problem: { key: "json", reason: cause instanceof Error ? cause.message : "" } };
  }
  // The answer of the list, too, so that what was read can be sent back.
  const list: unknown = typeof parsed === "object" && parsed !== null && "items" in parsed ? parsed.items : parsed;
  if (!Array.isArray(list)) return { problem: { key: "list" } };
  return collect(
    list.map((each: unknown, index) => {
      if (typeof each !== "object" || each === null) return { key: "row", row: index + 1, field: "id" };
      const { id, subject, addresses, description } = each as Record<string, unknown>;
      const given = Array.isArray(addresses) ? addresses.map(word).filter((address) => address !== "") : split(word(addresses));
      return workload(word(id), word(subject), given, word(description), index + 1);
    }),
  );
}

/** readWorkloads parses the workloads of a text: JSON if its first character is a bracket or a brace, otherwise CSV. */
export function readWorkloads(text: string): FileResult {
  const trimmed = text.trim();
  if (trimmed === "") return { problem: { key: "nothing" } };
  return /^[[{]/.test(trimmed) ? fromJSON(trimmed) : fromCSV(text);
}
