import { describe, expect, it } from "vitest";
import type { FlowCoverage } from "../api/types";
import { byDay, missing, percent, qualityOf, secondsWithin, watchedShare } from "./coverage";

const coverage = (over: Partial<FlowCoverage> = {}): FlowCoverage => ({ cluster: "m1", day: "2026-11-20", watchedSeconds: 86_400, lost: 0, gapSeconds: 0, ...over });

describe("coverage", () => {
  it("has a row per member and the newest day first", () => {
    const { days, rows } = byDay([coverage(), coverage({ cluster: "m2", day: "2026-11-21" }), coverage({ day: "2026-11-21" })]);
    expect(days).toEqual(["2026-11-21", "2026-11-20"]);
    expect(rows.map(({ cluster, days: known }) => [cluster, [...known.keys()]])).toEqual([["m1", ["2026-11-20", "2026-11-21"]], ["m2", ["2026-11-21"]]]);
  });

  it.each([
    ["a whole day", "2026-11-19T00:00:00Z", "2026-11-22T00:00:00Z", 86_400],
    ["a day that began before the window", "2026-11-20T18:00:00Z", "2026-11-22T00:00:00Z", 21_600],
    ["a day that is not over", "2026-11-20T00:00:00Z", "2026-11-20T01:00:00Z", 3_600],
    ["a day outside", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", 0],
  ])("counts only the window's part of %s", (_, since, until, want) => {
    expect(secondsWithin("2026-11-20", since, until)).toBe(want);
  });

  it.each([
    ["watched all the time", {}, 1, "ok"],
    ["flows were lost", { lost: 3 }, 1, "warn"],
    ["gaps are taken off", { gapSeconds: 43_200 }, 0.5, "warn"],
    ["hardly watched", { watchedSeconds: 8_640 }, 0.1, "bad"],
    ["not watched", { watchedSeconds: 0 }, 0, "idle"],
    ["more gap than watch is no negative share", { watchedSeconds: 10, gapSeconds: 20 }, 0, "idle"],
  ])("%s", (_, over, share, quality) => {
    const day = coverage(over);
    expect(watchedShare(day, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")).toBe(share);
    expect(qualityOf(share, day.lost)).toBe(quality);
  });

  it("says 100 only of what is complete", () => {
    expect([1, 0.9999, 0.5, 0.001].map(percent)).toEqual([100, 99, 50, 0]);
  });

  it("sums what is missing", () => {
    const items = [coverage({ lost: 5 }), coverage({ cluster: "m2", gapSeconds: 60 }), coverage({ cluster: "m3" })];
    expect(missing(items)).toEqual({ lost: 5, gapSeconds: 60, clusters: ["m1", "m2"] });
    expect(missing(items, ["m3"])).toEqual({ lost: 0, gapSeconds: 0, clusters: [] });
  });
});
