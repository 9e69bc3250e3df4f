import { describe, expect, it } from "vitest";
import { csvRows, readWorkloads } from "./workload-file";

const vm = { id: "vm-1", subject: "trnv1:rsc:a:iam:sa:app/1", addresses: ["10.0.0.1"] };

describe("a file of workloads", () => {
  it.each([
    { reason: "CSV", text: "id,subject,addresses\nvm-1,trnv1:rsc:a:iam:sa:app/1,10.0.0.1\n", want: [vm] },
    { reason: "several addresses, a description", text: "id,subject,addresses,description\nvm-1,trnv1:rsc:a:iam:sa:app/1,10.0.0.1; 10.0.0.2,\"old, but alive\"", want: [{ ...vm, addresses: ["10.0.0.1", "10.0.0.2"], description: "old, but alive" }] },
    { reason: "another order, a byte order mark, Windows line ends, an empty line", text: "\uFEFFAddresses,ID,Subject\r\n10.0.0.1,vm-1,trnv1:rsc:a:iam:sa:app/1\r\n\r\n", want: [vm] },
    { reason: "JSON", text: JSON.stringify([vm]), want: [vm] },
    { reason: "the answer of the API, without what only it says", text: JSON.stringify({ items: [{ ...vm, accepted: true, source: "portal" }] }), want: [vm] },
    { reason: "addresses as one text", text: JSON.stringify([{ ...vm, addresses: "10.0.0.1;10.0.0.2" }]), want: [{ ...vm, addresses: ["10.0.0.1", "10.0.0.2"] }] },
  ])("is read: $reason", ({ text, want }) => {
    expect(readWorkloads(text)).toEqual({ items: want });
  });

  it.each([
    { reason: "nothing", text: "  \n", want: { key: "nothing" } },
    { reason: "only the head", text: "id,subject,addresses\n", want: { key: "nothing" } },
    { reason: "an empty list", text: "[]", want: { key: "nothing" } },
    { reason: "no list", text: "{}", want: { key: "list" } },
    { reason: "missing columns", text: "id,name\nvm-1,x\n", want: { key: "columns", columns: "subject, addresses" } },
    { reason: "a quote without end", text: 'id,subject,addresses\nvm-1,"s,10.0.0.1\n', want: { key: "quote", line: 2 } },
    { reason: "too few cells", text: "id,subject,addresses\n\nvm-1,s\n", want: { key: "cells", line: 3, has: 2, wants: 3 } },
    { reason: "a row without an address", text: "id,subject,addresses\nvm-1,s,a\nvm-2,s, ;\n", want: { key: "row", row: 2, field: "addresses" } },
    { reason: "an entry that is none", text: "[3]", want: { key: "row", row: 1, field: "id" } },
  ])("says what is wrong: $reason", ({ text, want }) => {
    expect(readWorkloads(text)).toEqual({ problem: want });
  });

  it("says why JSON cannot be read", () => {
    expect(readWorkloads("[{").problem).toMatchObject({ key: "json" });
  });

  it("reads back whatever it wrote", () => {
    // Cells of every awkward character, in every combination of three.
    const parts = ["a", ",", '"', "\n", " ", ""];
    const cells = parts.flatMap((x) => parts.flatMap((y) => parts.map((z) => x + y + z)));
    const text = cells.map((cell) => `"${cell.replaceAll('"', '""')}",x`).join("\n");
    const rows = csvRows(text);
    expect(Array.isArray(rows) && rows.map((row) => row.cells)).toEqual(cells.map((cell) => [cell, "x"]));
  });

  it("ends on any text", () => {
    let seed = 7;
    const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const letters = ['"', ",", "\n", "\r", "a", ";", "[", "{", "\\", "\u0000"];
    for (let round = 0; round < 3_000; round++) {
      const text = Array.from({ length: next(40) }, () => letters[next(letters.length)]).join("");
      const { items, problem } = readWorkloads(text);
      expect({ text, one: (items === undefined) !== (problem === undefined) }).toEqual({ text, one: true });
    }
  });
});
