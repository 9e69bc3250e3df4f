import { describe, expect, it } from "vitest";
import { auditEnd, auditEndError, timeLeft } from "./temporary-audit";

const now = Date.parse("2026-11-21T10:00:00Z");
const at = (text: string) => new Date(text);

describe("the end of a temporary audit", () => {
  it.each([
    ["counts from now", { choice: "4h", at: undefined }, "2026-11-21T14:00:00.000Z"],
    ["is what was chosen", { choice: "custom", at: at("2026-11-21T11:30:00Z") }, "2026-11-21T11:30:00.000Z"],
    ["forgets what was chosen before", { choice: "1h", at: at("2026-11-25T00:00:00Z") }, "2026-11-21T11:00:00.000Z"],
  ] as const)("%s", (_, end, want) => {
    expect(auditEnd(end, now)?.toISOString()).toBe(want);
  });

  it.each([
    ["nothing chosen", undefined, "missing"],
    ["no time", new Date(Number.NaN), "missing"],
    ["now", at("2026-11-21T10:00:00Z"), "past"],
    ["exactly a week", at("2026-11-28T10:00:00Z"), undefined],
    ["longer than a week", at("2026-11-28T10:00:01Z"), "long"],
  ])("%s", (_, end, want) => {
    expect(auditEndError(end, now)).toBe(want);
  });
});

describe("what is left", () => {
  it.each([
    ["2026-11-21T11:04:09Z", "1:04:09"],
    ["2026-11-21T10:00:00.400Z", "0:00:01"],
    ["2026-11-21T09:00:00Z", "0:00:00"],
    ["2026-11-23T10:00:00Z", "48:00:00"],
  ])("until %s is %s", (until, want) => {
    expect(timeLeft(until, now)).toBe(want);
  });
});
