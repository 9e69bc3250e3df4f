/** Tables as CSV (RFC 4180). Column names are English, whatever the language of the page, so that scripts can rely on them. */

/** CsvValue is the value of a cell; several values are joined by "; ". */
export type CsvValue = string | number | boolean | undefined | readonly (string | undefined)[];

/** CsvTable describes a table as a file: its name without the extension, and its columns by name, in their order. */
export interface CsvTable<Row> {
  file: string;
  columns: Record<string, (row: Row) => CsvValue>;
}

/** formulaStarts contains the characters with which a text may begin that spreadsheets read as a formula; some read the wide forms, too. */
const formulaStarts = new Set([..."=+-@\t\r\n＝＋－＠"]);

/** cell returns a value as a cell. Texts that spreadsheets would read as a formula are made harmless, as the server does. */
function cell(value: CsvValue): string {
  if (value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return String(value);
  const text = typeof value === "string" ? value : value.filter((each) => each !== undefined && each !== "").join("; ");
  const [first] = text;
  const harmless = first !== undefined && formulaStarts.has(first) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** csvText returns the rows as CSV, with the names of the columns in the first line. */
export function csvText<Row>({ columns }: CsvTable<Row>, rows: readonly Row[]): string {
  const values = Object.values(columns);
  const lines = [Object.keys(columns).map(cell), ...rows.map((row) => values.map((value) => cell(value(row))))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** fileName returns the name of the file, in which characters that some systems refuse are replaced. */
export const fileName = <Row>({ file }: CsvTable<Row>): string => `${file.replaceAll(/[^\w.-]/g, "_")}.csv`;

/** saveCSV saves the rows as a file. By the byte order mark, spreadsheets read the file as UTF-8. */
export function saveCSV<Row>(table: CsvTable<Row>, rows: readonly Row[]): void {
  const url = URL.createObjectURL(new Blob(["\uFEFF", csvText(table, rows)], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName(table);
  link.click();
  URL.revokeObjectURL(url);
}
