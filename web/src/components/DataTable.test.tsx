import { MantineProvider } from "@mantine/core";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { createMemoryRouter, RouterProvider } from "react-router";
import { describe, expect, it } from "vitest";
import { theme } from "../theme";
import { DataTable, rowsAtOnce } from "./DataTable";
import type { Column } from "./DataTable";

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

interface Member {
  name: string;
  size: number | undefined;
}

const members: Member[] = [
  { name: "m10", size: 3 },
  { name: "m2", size: undefined },
  { name: "m1", size: 20 },
];

const columns: Column<Member>[] = [
  { key: "name", header: "Name", cell: (row) => row.name, sortBy: (row) => row.name },
  { key: "size", header: "Size", cell: (row) => row.size, sortBy: (row) => row.size },
  { key: "note", header: "Note", cell: () => "–" },
];

function open(at: string, props: { partial?: boolean; orders?: string[]; sortParam?: string } = {}) {
  const router = createMemoryRouter([{ path: "/", element: <DataTable label="Members" columns={columns} rows={members} rowKey={(row) => row.name} {...props} /> }], { initialEntries: [at] });
  render(
    <MantineProvider theme={theme} env="test">
      <RouterProvider router={router} />
    </MantineProvider>,
  );
  return router;
}

const names = () => screen.getAllByRole("row").slice(1).map((row) => within(row).getAllByRole("cell")[0]?.textContent);
const header = (name: string) => screen.getByRole("columnheader", { name });

describe("a table that can be sorted", () => {
  it("shows the rows as they came, and says which columns can be sorted", () => {
    open("/");
    expect(names()).toEqual(["m10", "m2", "m1"]);
    expect(header("Name")).toHaveAttribute("aria-sort", "none");
    expect(header("Note")).not.toHaveAttribute("aria-sort");
    expect(within(header("Note")).queryByRole("button")).toBeNull();
  });

  it("is sorted as the address says", () => {
    open("/?sort=-size");
    expect(names()).toEqual(["m1", "m10", "m2"]);
    expect(header("Size")).toHaveAttribute("aria-sort", "descending");
    expect(header("Name")).toHaveAttribute("aria-sort", "none");
  });

  it("ignores a column that it does not have, or that cannot be sorted", () => {
    open("/?sort=note");
    expect(names()).toEqual(["m10", "m2", "m1"]);
  });

  it("is sorted by a header's button, also with the keyboard, and writes that into the address beside the filters", async () => {
    const user = userEvent.setup();
    const router = open("/?q=m");
    await user.click(within(header("Name")).getByRole("button", { name: "Name" }));
    expect(names()).toEqual(["m1", "m2", "m10"]);
    expect(header("Name")).toHaveAttribute("aria-sort", "ascending");
    expect(router.state.location.search).toBe("?q=m&sort=name");
    await user.keyboard("{Enter}");
    expect(names()).toEqual(["m10", "m2", "m1"]);
    expect(router.state.location.search).toBe("?q=m&sort=-name");
    await user.keyboard(" ");
    expect(router.state.location.search).toBe("?q=m");
    expect(header("Name")).toHaveAttribute("aria-sort", "none");
  });

  it("has a menu for narrow screens, where the headers are hidden", async () => {
    const user = userEvent.setup();
    const router = open("/");
    await user.click(screen.getByRole("button", { name: "Sort", hidden: true }));
    await user.click(await screen.findByRole("menuitem", { name: "Size, descending" }));
    expect(router.state.location.search).toBe("?sort=-size");
    expect(names()).toEqual(["m1", "m10", "m2"]);
  });

  it("keeps the sort of a second table of the page apart", () => {
    open("/?sort=name&units-sort=-name", { sortParam: "units-sort" });
    expect(header("Name")).toHaveAttribute("aria-sort", "descending");
  });

  it("cannot be sorted while further rows are on the server", () => {
    open("/?sort=name", { partial: true });
    expect(names()).toEqual(["m10", "m2", "m1"]);
    expect(header("Name")).not.toHaveAttribute("aria-sort");
    expect(screen.queryByRole("button")).toBeNull();
  });

  it("is sorted by the server while further rows are there: the rows stay as they came", async () => {
    const user = userEvent.setup();
    const router = open("/?sort=-size", { partial: true, orders: ["-size", "note", "-note"] });
    expect(names()).toEqual(["m10", "m2", "m1"]);
    expect(header("Size")).toHaveAttribute("aria-sort", "descending");
    expect(header("Note")).toHaveAttribute("aria-sort", "none");
    expect(header("Name")).not.toHaveAttribute("aria-sort");
    expect(within(header("Name")).queryByRole("button")).toBeNull();
    await user.click(within(header("Size")).getByRole("button", { name: "Size" }));
    expect(router.state.location.search).toBe("");
    within(header("Note")).getByRole("button", { name: "Note" }).focus();
    await user.keyboard("{Enter}");
    expect(router.state.location.search).toBe("?sort=note");
    expect(names()).toEqual(["m10", "m2", "m1"]);
    await user.click(screen.getByRole("button", { name: "Sort", hidden: true }));
    expect((await screen.findAllByRole("menuitem")).map((item) => item.textContent)).toEqual(["Default order", "Size, descending", "Note, ascending", "Note, descending"]);
  });

  it("stays in the server's order when its last rows arrive", () => {
    open("/?sort=-size", { orders: ["-size"] });
    expect(names()).toEqual(["m10", "m2", "m1"]);
    expect(header("Size")).toHaveAttribute("aria-sort", "descending");
  });
  it("ignores an order that neither the server nor the rows have", () => {
    open("/?sort=size", { partial: true, orders: ["-size"] });
    expect(header("Size")).toHaveAttribute("aria-sort", "none");
  });
});
