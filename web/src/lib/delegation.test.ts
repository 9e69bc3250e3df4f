import { describe, expect, it } from "vitest";
import { delegationErrors, stateOf } from "./delegation";

const now = new Date("2026-11-20T10:00:00Z");
const good = { to: "carol", start: "2026-11-20T10:00", end: "2026-11-27T10:00", reason: "On leave." };

describe("a delegation", () => {
  it.each([
    { reason: "complete", over: {}, want: {} },
    { reason: "nobody", over: { to: "" }, want: { to: "person" } },
    { reason: "no dates", over: { start: "", end: "" }, want: { start: "start", end: "end" } },
    { reason: "over already", over: { start: "2026-11-01T10:00", end: "2026-11-02T10:00" }, want: { end: "past" } },
    { reason: "ends before it begins", over: { start: "2026-11-28T10:00" }, want: { end: "order" } },
    { reason: "90 days", over: { end: "2027-02-18T10:00" }, want: {} },
    { reason: "a minute longer", over: { end: "2027-02-18T10:01" }, want: { end: "long" } },
    { reason: "began long ago, so it begins now", over: { start: "2026-01-01T00:00" }, want: {} },
    { reason: "no reason but spaces", over: { reason: "  " }, want: { reason: "reason" } },
  ])("$reason", ({ over, want }) => {
    expect(delegationErrors({ ...good, ...over }, "UTC", now)).toEqual(want);
  });

  it.each([
    { of: { active: true, start: "2026-11-19T10:00:00Z" }, want: "active" },
    { of: { active: false, start: "2026-11-21T10:00:00Z" }, want: "planned" },
    { of: { active: false, start: "2026-11-21T10:00:00Z", endedAt: "2026-11-20T09:00:00Z" }, want: "ended" },
    { of: { active: false, start: "2026-11-01T10:00:00Z" }, want: "over" },
  ])("is $want", ({ of, want }) => {
    expect(stateOf(of, now)).toBe(want);
  });
});
