import { describe, expect, it } from "vitest";
import { addressKey, enteredList } from "./entered-list";

describe("an entered list", () => {
  it.each([
    ["has no surrounding spaces and nothing empty", [" a ", "", "  ", "b"], undefined, undefined, { values: ["a", "b"], duplicates: [], surplus: [] }],
    ["has each word once", ["a", "b", " a", "a"], undefined, undefined, { values: ["a", "b"], duplicates: ["a", "a"], surplus: [] }],
    ["keeps names that differ in case, because they are different names", ["App-1", "app-1"], undefined, undefined, { values: ["App-1", "app-1"], duplicates: [], surplus: [] }],
    ["has each address once, in its first spelling", ["2001:DB8::1", "10.0.0.1", "2001:db8::1/128", "10.0.0.1/32", "10.0.0.0/24"], addressKey, undefined, { values: ["2001:DB8::1", "10.0.0.1", "10.0.0.0/24"], duplicates: ["2001:db8::1/128", "10.0.0.1/32"], surplus: [] }],
    ["names what exceeds the limit, and what is there does not count twice", ["a", "b", "a", "c", "d"], undefined, 2, { values: ["a", "b"], duplicates: ["a"], surplus: ["c", "d"] }],
  ])("%s", (_, words, keyOf, most, want) => expect(enteredList(words, keyOf, most)).toEqual(want));
});
