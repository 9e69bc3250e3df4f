import { describe, expect, it } from "vitest";
import { nextSort, parseSort, sortRows, writeSort } from "./table-sort";
import type { Sort } from "./table-sort";

const both = (key: string): Sort[] => [{ key, descending: false }, { key, descending: true }];

describe("the sort of a table", () => {
  it.each([
    { value: "name", want: { key: "name", descending: false } },
    { value: "-name", want: { key: "name", descending: true } },
    { value: "other", want: undefined },
    { value: "-", want: undefined },
    { value: "", want: undefined },
    { value: null, want: undefined },
  ])("is read from the URL value $value", ({ value, want }) => {
    expect(parseSort(value, both("name"))).toEqual(want);
  });

  it("is written as it is read", () => {
    for (const value of ["name", "-name", undefined]) expect(writeSort(parseSort(value ?? null, both("name")))).toBe(value);
  });

  it("goes from ascending to descending to the original order, and starts anew on another column", () => {
    const first = nextSort(undefined, both("name"));
    expect(first).toEqual({ key: "name", descending: false });
    const second = nextSort(first, both("name"));
    expect(second).toEqual({ key: "name", descending: true });
    expect(nextSort(second, both("name"))).toBeUndefined();
    expect(nextSort(second, both("size"))).toEqual({ key: "size", descending: false });
  });

  it("has only the directions that a column offers", () => {
    const down = both("size").slice(1);
    expect(parseSort("size", down)).toBeUndefined();
    const first = nextSort(undefined, down);
    expect(first).toEqual({ key: "size", descending: true });
    expect(nextSort(first, down)).toBeUndefined();
  });

  it.each([
    { reason: "numbers in names count as numbers", values: ["m10", "m2", "M1"], up: ["M1", "m2", "m10"] },
    { reason: "numbers", values: [10, 9, 100], up: [9, 10, 100] },
    { reason: "pinyin in Chinese", values: ["张三", "李四", "王五"], up: ["李四", "王五", "张三"], language: "zh" },
  ])("$reason", ({ values, up, language = "en" }) => {
    const by = (value: string | number) => value;
    expect(sortRows<string | number>(values, by, false, language)).toEqual(up);
    expect(sortRows<string | number>(values, by, true, language)).toEqual([...up].reverse());
  });

  it("puts missing values last in both directions, and keeps the order of equal ones", () => {
    const rows = [{ id: 1 }, { id: 2, at: 5 }, { id: 3, at: 7 }, { id: 4, at: 5 }];
    const ids = (descending: boolean) => sortRows(rows, (row) => row.at, descending, "en").map(({ id }) => id);
    expect(ids(false)).toEqual([2, 4, 3, 1]);
    expect(ids(true)).toEqual([3, 2, 4, 1]);
  });
});
