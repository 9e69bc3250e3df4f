import { describe, expect, it } from "vitest";
import { app888, connection } from "../testing/fixtures";
import { fold } from "./folded-connections";

const seen = (second: number) => `2026-11-20T10:00:${String(second).padStart(2, "0")}Z`;

describe("folding connections", () => {
  it("makes one row of all clusters and ways, with the sum and the newest time", () => {
    const rows = fold([
      connection({ cluster: "m2", sourceCluster: "m1", count: 5, lastSeen: seen(3) }),
      connection({ cluster: "m1", sourceCluster: "m1", count: 7, lastSeen: seen(9) }),
      connection({ cluster: "m2", count: 2, lastSeen: seen(1) }),
    ]);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ count: 14, lastSeen: seen(9), ports: ["6379/TCP"], letThrough: 0 });
    expect(rows[0]?.clusters).toEqual([
      { cluster: "m1", count: 7, lastSeen: seen(9), from: ["m1"] },
      { cluster: "m2", count: 7, lastSeen: seen(3), from: ["m1", "m2"] },
    ]);
  });

  it("separates connections for which access can be requested from ports without an action", () => {
    const rows = fold([connection({ lastSeen: seen(1) }), connection({ action: undefined, port: 9121, lastSeen: seen(2) })]);
    expect(rows.map((row) => row.action)).toEqual(["redis:connect", undefined]);
  });

  it("puts what was seen in a later minute first", () => {
    const rows = fold([connection({ lastSeen: "2026-11-20T10:00:59Z" }), connection({ action: undefined, port: 9121, lastSeen: "2026-11-20T10:01:00Z" })]);
    expect(rows.map((row) => row.ports)).toEqual([["9121/TCP"], ["6379/TCP"]]);
  });

  it("folds the ports of an action", () => {
    const [row, ...more] = fold([connection({ port: 16379 }), connection({ port: 6379 })]);
    expect(more).toEqual([]);
    expect(row?.ports).toEqual(["6379/TCP", "16379/TCP"]);
  });

  it("counts what was let through though refused, without a row of its own", () => {
    const [row, ...more] = fold([connection({ count: 12 }), connection({ verdict: "forwarded", count: 3 }), connection({ decision: "denied", count: 1 })]);
    expect(more).toEqual([]);
    expect(row).toMatchObject({ count: 16, letThrough: 3, decisions: ["denied", "default-denied"] });
  });

  it("does not mix what was refused with what was allowed, nor applications with each other", () => {
    const rows = fold([
      connection(),
      connection({ decision: "allowed", verdict: "forwarded", sid: "t-1-1" }),
      connection({ decision: "allowed", verdict: "forwarded", sid: "t-2-1" }),
      connection({ subject: { ...app888, id: "app-889", name: "trnv1:rsc:trip-com:iam:sa:app/889" } }),
    ]);
    expect(rows).toHaveLength(4);
    expect(rows.filter((row) => row.letThrough > 0)).toEqual([]);
  });
});
