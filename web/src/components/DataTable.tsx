import { VisuallyHidden } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState } from "react";
import type { ReactNode, Ref } from "react";
import classes from "./DataTable.module.css";

export interface Column<Row> {
  key: string;
  header: string;
  /** A column of buttons, whose header only screen readers need. */
  silent?: boolean;
  cell: (row: Row) => ReactNode;
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
  testId?: string;
}

/** From here on only what is near the window is in the page. */
export const rowsAtOnce = 200;
/** Until a row has been measured. */
const usualHeight = 44;
const beyond = 30;

function cellClass<Row>(column: Column<Row>): string | undefined {
  return [column.end && classes.end, column.nowrap && classes.nowrap].filter(Boolean).join(" ") || undefined;
}

/* eslint-disable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role -- see DataTable */
interface RowProps<Row> {
  row: Row;
  columns: Column<Row>[];
  rowTestId: ((row: Row) => string) | undefined;
  dim: ((row: Row) => boolean) | undefined;
  /** Its place among all rows, where not all are in the page. */
  index?: number;
  measure?: Ref<HTMLTableRowElement>;
}

function TableRow<Row>({ row, columns, rowTestId, dim, index, measure }: RowProps<Row>) {
  return (
    // The header is the first row.
    <tr ref={measure} role="row" className={dim?.(row) ? classes.dim : undefined} data-testid={rowTestId?.(row)} data-index={index} aria-rowindex={index === undefined ? undefined : index + 2}>
      {columns.map((column) => (
        <td key={column.key} role="cell" data-label={column.silent ? "" : column.header} className={cellClass(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

/** Stands for the rows that are not in the page. */
function Gap({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden className={classes.gap}>
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

function ManyRows<Row>({ columns, rows, rowKey, rowTestId, dim }: DataTableProps<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    if (body.current) setTop(body.current.getBoundingClientRect().top + window.scrollY);
  }, []);
  const shown = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => usualHeight,
    // What is not laid out (in a hidden part of the page) has no height, and would let all rows in.
    measureElement: (row) => row.getBoundingClientRect().height || usualHeight,
    overscan: beyond,
    scrollMargin: top,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : rowKey(row);
    },
  });
  const items = shown.getVirtualItems();
  return (
    <tbody ref={body} role="rowgroup">
      <Gap height={(items[0]?.start ?? top) - top} columns={columns.length} />
      {items.map(({ index, key }) => {
        const row = rows[index];
        return row !== undefined && <TableRow key={key} row={row} columns={columns} rowTestId={rowTestId} dim={dim} index={index} measure={shown.measureElement} />;
      })}
      <Gap height={shown.getTotalSize() + top - (items.at(-1)?.end ?? top)} columns={columns.length} />
    </tbody>
  );
}

/**
 * The one table. Roles are spelled out because the narrow layout changes
 * `display`, which makes browsers forget that a table is one.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowKey, rowTestId, dim, testId } = props;
  const many = rows.length > rowsAtOnce;
  return (
    <div className={classes.frame}>
      <table className={classes.table} role="table" aria-label={label} data-testid={testId} aria-rowcount={many ? rows.length + 1 : undefined}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.key} role="columnheader" scope="col" className={cellClass(column)}>
                {column.silent ? <VisuallyHidden>{column.header}</VisuallyHidden> : column.header}
              </th>
            ))}
          </tr>
        </thead>
        {many ? (
          <ManyRows {...props} />
        ) : (
          <tbody role="rowgroup">
            {rows.map((row) => (
              <TableRow key={rowKey(row)} row={row} columns={columns} rowTestId={rowTestId} dim={dim} />
            ))}
          </tbody>
        )}
      </table>
    </div>
  );
}
/* eslint-enable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */
