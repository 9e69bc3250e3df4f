import { describe, expect, it } from "vitest";
import { csvText, fileName } from "./csv";
import type { CsvTable } from "./csv";

interface Row {
  name: string;
  count?: number;
  tags?: string[];
  ends?: boolean;
}

const table: CsvTable<Row> = {
  file: "things of bob/1",
  columns: { name: (row) => row.name, count: (row) => row.count, tags: (row) => row.tags, "can end": (row) => row.ends },
};
const only = (name: string) => csvText({ file: "x", columns: { name: (row: Row) => row.name } }, [{ name }]);

describe("a table as CSV", () => {
  it("has the names of its columns, and a line for each row", () => {
    const rows: Row[] = [{ name: "a", count: -3, tags: ["x", "", "y"], ends: true }, { name: "缓存", ends: false }];
    expect(csvText(table, rows)).toBe("name,count,tags,can end\r\na,-3,x; y,yes\r\n缓存,,,no\r\n");
  });

  it("quotes what would end a cell", () => {
    expect(only('say "a, b"\nc')).toBe('name\r\n"say ""a, b""\nc"\r\n');
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "＝1", "－1"])("makes the formula %j harmless", (text) => {
    expect(only(text)).toBe(`name\r\n'${text}\r\n`);
  });

  it("makes a formula harmless that begins a list, or that is quoted", () => {
    expect(csvText({ file: "x", columns: { tags: (row: Row) => row.tags } }, [{ name: "", tags: ["=1", "b"] }])).toBe("tags\r\n'=1; b\r\n");
    expect(only('=HYPERLINK("http://x","y")')).toBe('name\r\n"\'=HYPERLINK(""http://x"",""y"")"\r\n');
  });

  it("has a file name that every system accepts", () => {
    expect(fileName(table)).toBe("things_of_bob_1.csv");
  });
});
