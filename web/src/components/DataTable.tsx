import { Button, Menu, VisuallyHidden } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconArrowsSort } from "@tabler/icons-react";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import type { MouseEvent, ReactNode, RefObject } from "react";
import { useTranslation } from "react-i18next";
import { nextSort, parseSort, sortRows, writeSort } from "../lib/table-sort";
import type { Sort, Sortable } from "../lib/table-sort";
import { useFilters } from "../lib/use-filters";
import type { CsvTable } from "../lib/csv";
import { TableDownload } from "./TableDownload";
import type { Pages } from "./TableDownload";
import classes from "./DataTable.module.css";

/** Column is one column of a table: its header, the content of its cells and how it is sorted. */
export interface Column<Row> {
  key: string;
  header: string;
  /** A column of buttons, whose header only screen readers need. */
  silent?: boolean;
  cell: (row: Row) => ReactNode;
  /** Makes the table sortable by this column when all rows were read; see DataTable's `orders` for the others. */
  sortBy?: (row: Row) => Sortable;
  end?: boolean;
  nowrap?: boolean;
}

interface DataTableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  rowTestId?: (row: Row) => string;
  dim?: (row: Row) => boolean;
  /** Called when a row is clicked. A control in the row must do the same for the keyboard. */
  onRow?: (row: Row) => void;
  testId?: string;
  /**
   * The server has more rows than `rows` contains. By default this is read from `query`. Sorting only the rows that were read would show a
   * wrong order, so only the server can sort the table. A file of these rows would not be complete, so there is none without the query.
   */
  partial?: boolean;
  /** The orders in which the server returns the rows (see useServerSort). Their columns can be sorted even if the table is partial. */
  orders?: readonly string[];
  /** The URL's parameter with the sort; a second table of a page needs a name of its own. */
  sortParam?: string;
  /** The table as a file, which the reader can save. */
  csv?: CsvTable<Row>;
  /** The query of the rows. For the file, the remaining rows are read by it. */
  query?: Pages<Row>;
}

/** Sorting is the sort of a table, and the function that a press on a header calls. */
interface Sorting {
  sort: Sort | undefined;
  /** The sorts that a column can have, in the order in which presses on its header select them; empty if it cannot be sorted. */
  choices: (key: string) => Sort[];
  onSort: (sort: Sort | undefined) => void;
}

/** rowsAtOnce is the number of rows above which only those near the window are in the document. */
export const rowsAtOnce = 200;
const guessedHeight = 56;

const classOf = <Row,>(column: Column<Row>) => [column.end && classes.end, column.nowrap && classes.nowrap].filter(Boolean).join(" ") || undefined;

/** isOnRow reports whether a click counts as a click on the row. Clicks on a control, and clicks that end a text selection, do not. */
function isOnRow(event: MouseEvent): boolean {
  return !(event.target as Element).closest("a, button, input, label, summary") && (globalThis.getSelection()?.isCollapsed ?? true);
}

interface RowProps<Row> extends Pick<DataTableProps<Row>, "columns" | "rowTestId" | "dim" | "onRow"> {
  row: Row;
  index?: number;
  measure?: (element: Element | null) => void;
}

/* Roles are spelled out because the narrow layout changes `display`, which makes browsers forget that a table is one. */
/* eslint-disable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role -- see above */
function TableRow<Row>({ row, columns, rowTestId, dim, onRow, index, measure }: RowProps<Row>) {
  const className = [dim?.(row) && classes.dim, onRow && classes.opens].filter(Boolean).join(" ") || undefined;
  return (
    <tr
      ref={measure}
      role="row"
      className={className}
      data-testid={rowTestId?.(row)}
      data-index={index}
      aria-rowindex={index === undefined ? undefined : index + 2}
      onClick={onRow && ((event) => isOnRow(event) && onRow(row))}
    >
      {columns.map((column) => (
        <td key={column.key} role="cell" data-label={column.silent ? "" : column.header} className={classOf(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function Spacer({ height, span }: { height: number; span: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden className={classes.spacer}>
      <td colSpan={span} style={{ height }} />
    </tr>
  );
}

/** VirtualRows renders only the rows near the visible area, with space in place of the others. */
function VirtualRows<Row>({ frame, rows, rowKey, ...rest }: Omit<DataTableProps<Row>, "label" | "testId" | "csv" | "query"> & { frame: RefObject<HTMLDivElement | null> }) {
  const [margin, setMargin] = useState(0);
  // A change of size above the table changes the height of the page, so the offset is measured then.
  useEffect(() => {
    const observer = new ResizeObserver(() => setMargin((frame.current?.getBoundingClientRect().top ?? 0) + window.scrollY));
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [frame]);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => guessedHeight,
    // A hidden table has no height, and all rows would be rendered.
    measureElement: (row) => row.getBoundingClientRect().height || guessedHeight,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : rowKey(row);
    },
    overscan: 12,
    scrollMargin: margin,
  });
  const items = virtual.getVirtualItems();
  return (
    <tbody role="rowgroup">
      <Spacer height={(items[0]?.start ?? margin) - margin} span={rest.columns.length} />
      {items.map(({ index, key }) => {
        const row = rows[index];
        return row === undefined ? null : <TableRow key={key} row={row} index={index} measure={virtual.measureElement} {...rest} />;
      })}
      <Spacer height={virtual.getTotalSize() - ((items.at(-1)?.end ?? margin) - margin)} span={rest.columns.length} />
    </tbody>
  );
}

function HeaderCell<Row>({ column, sorting }: { column: Column<Row>; sorting: Sorting | undefined }) {
  const active = sorting?.sort?.key === column.key ? sorting.sort : undefined;
  const choices = sorting?.choices(column.key) ?? [];
  const sortable = sorting !== undefined && choices.length > 0;
  const Icon = active === undefined ? IconArrowsSort : active.descending ? IconArrowDown : IconArrowUp;
  return (
    <th role="columnheader" scope="col" className={classOf(column)} aria-sort={!sortable ? undefined : active === undefined ? "none" : active.descending ? "descending" : "ascending"}>
      {sortable ? (
        <button type="button" className={classes.sort} data-active={active !== undefined || undefined} onClick={() => sorting.onSort(nextSort(sorting.sort, choices))}>
          {column.header}
          <Icon size={13} aria-hidden />
        </button>
      ) : column.silent ? (
        <VisuallyHidden>{column.header}</VisuallyHidden>
      ) : (
        column.header
      )}
    </th>
  );
}

/** SortMenu selects the sort where the narrow layout hides the headers. */
function SortMenu<Row>({ columns, sort, choices: choicesOf, onSort }: Sorting & { columns: Column<Row>[] }) {
  const { t } = useTranslation();
  const choices = columns.flatMap(({ key, header }) => choicesOf(key).map((choice) => ({ ...choice, header })));
  return (
    <div className={classes.sortMenu}>
      <Menu position="bottom-start">
        <Menu.Target>
          <Button size="compact-sm" variant="default" leftSection={<IconArrowsSort size={14} aria-hidden />}>
            {t("table.sort")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => onSort(undefined)} aria-current={sort === undefined}>{t("table.original")}</Menu.Item>
          {choices.map((choice) => (
            <Menu.Item key={writeSort(choice)} onClick={() => onSort({ key: choice.key, descending: choice.descending })} aria-current={sort?.key === choice.key && sort.descending === choice.descending}>
              {t(choice.descending ? "table.descending" : "table.ascending", { column: choice.header })}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}

function Rows<Row>({ label, rows, rowKey, testId, sorting, ...rest }: Omit<DataTableProps<Row>, "partial" | "orders" | "sortParam" | "csv" | "query"> & { sorting?: Sorting }) {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = rows.length > rowsAtOnce;
  return (
    <div className={classes.frame} ref={frame}>
      <table className={classes.table} role="table" aria-label={label} aria-rowcount={virtual ? rows.length + 1 : undefined} data-testid={testId}>
        <thead role="rowgroup">
          <tr role="row">
            {rest.columns.map((column) => (
              <HeaderCell key={column.key} column={column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        {virtual ? (
          <VirtualRows frame={frame} rows={rows} rowKey={rowKey} {...rest} />
        ) : (
          <tbody role="rowgroup">
            {rows.map((row) => (
              <TableRow key={rowKey(row)} row={row} {...rest} />
            ))}
          </tbody>
        )}
      </table>
    </div>
  );
}
/* eslint-enable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */

/** choicesOf returns the sorts of a column: those of the server, or both directions if all rows were read and the column can be compared. */
function choicesOf<Row>(column: Column<Row>, partial: boolean, orders: readonly string[]): Sort[] {
  const both = [false, true].map((descending) => ({ key: column.key, descending }));
  return !partial && column.sortBy ? both : both.filter((sort) => orders.includes(writeSort(sort) ?? ""));
}

/** SortedRows shows the rows in the order of the URL. */
function SortedRows<Row>({ rows, columns, partial = false, orders = [], sortParam = "sort", ...rest }: Omit<DataTableProps<Row>, "csv" | "query">) {
  const { i18n } = useTranslation();
  const [search, change] = useFilters();
  const choices = new Map(columns.map((column) => [column.key, choicesOf(column, partial, orders)]));
  const sort = parseSort(search.get(sortParam), [...choices.values()].flat());
  const byServer = orders.includes(writeSort(sort) ?? ""); // the rows are in its order, which the browser's comparison may not have
  const by = partial || byServer ? undefined : columns.find(({ key }) => key === sort?.key)?.sortBy;
  const sorted = by && sort ? sortRows(rows, by, sort.descending, i18n.language) : rows;
  const sorting: Sorting = { sort, choices: (key) => choices.get(key) ?? [], onSort: (next) => change({ [sortParam]: writeSort(next) }) };
  return (
    <>
      <SortMenu columns={columns} {...sorting} />
      <Rows rows={sorted} columns={columns} sorting={sorting} {...rest} />
    </>
  );
}

/** DataTable is the table of all pages. It can be sorted by the columns that the server sorts, and by those with `sortBy` when all rows were read. */
export function DataTable<Row>({ orders = [], sortParam, csv, query, partial = query?.hasNextPage ?? false, ...rest }: DataTableProps<Row>) {
  const sortable = rest.rows.length > 1 && rest.columns.some((column) => choicesOf(column, partial, orders).length > 0);
  return (
    <>
      {sortable ? <SortedRows partial={partial} orders={orders} sortParam={sortParam} {...rest} /> : <Rows {...rest} />}
      {csv && (query || !partial) && <TableDownload csv={csv} rows={rest.rows} query={query} />}
    </>
  );
}
