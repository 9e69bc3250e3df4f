import { MantineProvider } from "@mantine/core";
import { render, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { theme } from "../theme";
import { DataTable, rowsAtOnce } from "./DataTable";

const show = (many: number) =>
  render(
    <MantineProvider theme={theme} env="test">
      <DataTable label="Things" columns={[{ key: "name", header: "Name", cell: (row: string) => row }]} rows={Array.from({ length: many }, (_, i) => `thing ${i}`)} rowKey={(row) => row} />
    </MantineProvider>,
  );

describe("the table", () => {
  it("has all rows in the page while they are few", () => {
    show(rowsAtOnce);
    const table = screen.getByRole("table", { name: "Things" });
    expect(within(table).getAllByRole("row")).toHaveLength(rowsAtOnce + 1);
    expect(table).not.toHaveAttribute("aria-rowcount");
  });

  it("has only those near the window when they are many, and says how many there are", () => {
    show(10_000);
    const table = screen.getByRole("table", { name: "Things" });
    const rows = within(table).getAllByRole("row");
    expect(rows.length).toBeLessThan(rowsAtOnce);
    expect(table).toHaveAttribute("aria-rowcount", "10001");
    expect(rows[1]).toHaveTextContent("thing 0");
    expect(rows[1]).toHaveAttribute("aria-rowindex", "2");
  });
});
