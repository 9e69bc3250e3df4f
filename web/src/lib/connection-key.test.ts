import { describe, expect, it } from "vitest";
import { connection } from "../testing/fixtures";
import { connectionKey } from "./connection-key";

describe("the key of a connection", () => {
  it("stays the same while the connection goes on", () => {
    expect(connectionKey(connection({ count: 13, lastSeen: "2026-11-20T11:00:00Z" }))).toBe(connectionKey(connection()));
  });

  it.each([
    ["another port", { port: 6380 }],
    ["another member", { cluster: "m2" }],
    ["another verdict", { verdict: "forwarded" }],
    ["another statement", { sid: "t-1-1" }],
    ["a source without a name in the catalog", { subject: { name: "", title: "10.0.0.7" } }],
  ] as const)("tells apart %s", (_, over) => {
    expect(connectionKey(connection(over))).not.toBe(connectionKey(connection()));
  });
});
