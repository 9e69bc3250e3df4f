import { describe, expect, it } from "vitest";
import { instantOf, isZone, wallTime } from "./zone";

describe("times of day in a zone", () => {
  it.each([
    { reason: "UTC", wall: "2026-11-21T09:30", zone: "UTC", want: "2026-11-21T09:30:00.000Z" },
    { reason: "east", wall: "2026-11-21T09:30", zone: "Asia/Shanghai", want: "2026-11-21T01:30:00.000Z" },
    { reason: "west, the day before", wall: "2026-11-20T20:00", zone: "America/New_York", want: "2026-11-21T01:00:00.000Z" },
    { reason: "half an hour", wall: "2026-11-21T09:30", zone: "Asia/Kolkata", want: "2026-11-21T04:00:00.000Z" },
    { reason: "summer", wall: "2026-07-01T09:00", zone: "Europe/Berlin", want: "2026-07-01T07:00:00.000Z" },
    { reason: "skipped by the clocks: after the gap", wall: "2026-03-29T02:30", zone: "Europe/Berlin", want: "2026-03-29T01:30:00.000Z" },
    { reason: "passed twice: the first", wall: "2026-10-25T02:30", zone: "Europe/Berlin", want: "2026-10-25T00:30:00.000Z" },
    { reason: "an hour before the change", wall: "2026-03-29T01:30", zone: "Europe/Berlin", want: "2026-03-29T00:30:00.000Z" },
  ])("$reason", ({ wall, zone, want }) => {
    expect(instantOf(wall, zone)?.toISOString()).toBe(want);
  });

  it.each(["", "tomorrow", "2026-11-21", "2026-11-21T09"])("has no instant for %j", (wall) => {
    expect(instantOf(wall, "UTC")).toBeUndefined();
  });

  it.each(["UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"])("reads back in %s what it wrote", (zone) => {
    const at = new Date("2026-11-21T09:30:00Z");
    expect(instantOf(wallTime(at, zone), zone)).toEqual(at);
  });

  it("recognises time zones", () => {
    expect(["Asia/Shanghai", "UTC", "Nowhere/Town", ""].map(isZone)).toEqual([true, true, false, false]);
  });
});
