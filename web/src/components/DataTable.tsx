import { VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
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

/**
 * The one table. Roles are spelled out because the narrow layout changes
 * `display`, which makes browsers forget that a table is one.
 */
export function DataTable<Row>({ label, columns, rows, rowKey, rowTestId, dim, testId }: DataTableProps<Row>) {
  const className = (column: Column<Row>) => [column.end && classes.end, column.nowrap && classes.nowrap].filter(Boolean).join(" ") || undefined;
  return (
    <div className={classes.frame}>
      {/* eslint-disable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role -- see above */}
      <table className={classes.table} role="table" aria-label={label} data-testid={testId}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.key} role="columnheader" scope="col" className={className(column)}>
                {column.silent ? <VisuallyHidden>{column.header}</VisuallyHidden> : column.header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={rowKey(row)} role="row" className={dim?.(row) ? classes.dim : undefined} data-testid={rowTestId?.(row)}>
              {columns.map((column) => (
                <td key={column.key} role="cell" data-label={column.silent ? "" : column.header} className={className(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {/* eslint-enable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */}
    </div>
  );
}
