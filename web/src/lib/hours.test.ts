import { describe, expect, it } from "vitest";
import type { WeeklyHours } from "../api/types";
import { hoursBody, hoursError, hoursText, isHours, usualPeriod } from "./hours";

const work: WeeklyHours = { timeZone: "Europe/Berlin", periods: [usualPeriod] };

describe("hours", () => {
  it.each<[WeeklyHours, string, string]>([
    [work, "en", "Mon–Fri 09:00–18:00 (Europe/Berlin)"],
    [work, "zh", "周一–周五 09:00–18:00 (Europe/Berlin)"],
    [{ timeZone: "UTC", periods: [{ days: ["Sun", "Sat", "Mon"], from: "22:00", to: "06:00" }, { days: ["Wed"], from: "00:00", to: "24:00" }] }, "en", "Mon, Sat–Sun 22:00–06:00; Wed 00:00–24:00 (UTC)"],
    [{ timeZone: "UTC", periods: [{ days: ["Sun", "Sat", "Mon"], from: "22:00", to: "06:00" }] }, "zh", "周一、周六–周日 22:00–06:00 (UTC)"],
  ])("are shown as text", (hours, language, want) => {
    expect(hoursText(hours, language)).toBe(want);
  });

  it("are incomplete without days, times or a length", () => {
    const of = (over: Partial<typeof usualPeriod>) => hoursError({ timeZone: "UTC", periods: [{ ...usualPeriod, ...over }] });
    expect([of({}), of({ days: [] }), of({ from: "" }), of({ to: "09:00" }), of({ from: "00:00", to: "00:00" }), hoursError({ timeZone: "UTC", periods: [] }), hoursError(undefined)]).toEqual([false, true, true, true, false, true, false]);
  });

  it("end with the day at 00:00", () => {
    expect(hoursBody({ timeZone: "UTC", periods: [{ ...usualPeriod, from: "18:00", to: "00:00" }] }).periods[0]?.to).toBe("24:00");
  });

  it("are recognised in a draft", () => {
    expect([isHours(work), isHours(null), isHours({ timeZone: "UTC", periods: [{ days: ["Never"], from: "", to: "" }] })]).toEqual([true, false, false]);
  });
});
