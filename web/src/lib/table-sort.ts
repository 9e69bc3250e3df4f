/** Reads the sort of a table from the URL, and sorts rows. The URL contains the key of a column, with a minus sign in front for descending order. */

/** Sortable is the value by which rows are compared; undefined values come last in both directions. */
export type Sortable = string | number | undefined;

/** Sort is the column by which a table is sorted, and the direction. */
export interface Sort {
  key: string;
  descending: boolean;
}

/** parseSort parses the sort of a URL. It is undefined if the value is none of the choices. */
export function parseSort(value: string | null, choices: readonly Sort[]): Sort | undefined {
  return choices.find((each) => writeSort(each) === value);
}

/** writeSort returns the sort as the URL has it. */
export function writeSort(sort: Sort | undefined): string | undefined {
  return sort && (sort.descending ? `-${sort.key}` : sort.key);
}

/** nextSort returns the sort after a press on a column's header: its choices one after another, then the order in which the rows came. */
export function nextSort(sort: Sort | undefined, choices: readonly Sort[]): Sort | undefined {
  return choices[choices.findIndex((each) => writeSort(each) === writeSort(sort)) + 1];
}

/** instant returns an instant as a sortable value. */
export const instant = (at: string | undefined): number | undefined => (at === undefined ? undefined : Date.parse(at));

/** sortRows returns a sorted copy of the rows; rows with equal values keep their order. */
export function sortRows<Row>(rows: readonly Row[], by: (row: Row) => Sortable, descending: boolean, language: string): Row[] {
  const collator = new Intl.Collator(language, { numeric: true, sensitivity: "base" });
  const compare = (a: string | number, b: string | number) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b)));
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort((a, b) => {
      if (a.value === undefined || b.value === undefined) return Number(a.value === undefined) - Number(b.value === undefined);
      return descending ? compare(b.value, a.value) : compare(a.value, b.value);
    })
    .map(({ row }) => row);
}
