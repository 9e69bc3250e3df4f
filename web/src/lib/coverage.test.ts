import { describe, expect, it } from "vitest";
import type { FlowCoverage, FlowCoverageList } from "../api/types";
import { byDay, missing, percent, qualityOf, secondsWithin, watchedShare } from "./coverage";

const coverage = (over: Partial<FlowCoverage> = {}): FlowCoverage => ({ cluster: "m1", day: "2026-11-20", watchedSeconds: 86_400, lost: 0, gapSeconds: 0, ...over });
const oneDay = { since: "2026-11-20T00:00:00Z", until: "2026-11-21T00:00:00Z" };
const list = (items: FlowCoverage[], over: Partial<FlowCoverageList> = {}): FlowCoverageList => ({ available: true, ...oneDay, items, ...over });

describe("coverage", () => {
  it("has a row per member, and every day of the window, the newest first", () => {
    const { days, rows } = byDay(list([coverage(), coverage({ cluster: "m2", day: "2026-11-21" }), coverage({ day: "2026-11-21" })], { since: "2026-11-19T18:00:00Z", until: "2026-11-21T06:00:00Z" }));
    expect(days).toEqual(["2026-11-21", "2026-11-20", "2026-11-19"]);
    expect(rows.map(({ cluster, days: known }) => [cluster, [...known.keys()]])).toEqual([["m1", ["2026-11-20", "2026-11-21"]], ["m2", ["2026-11-21"]]]);
  });

  it("has a row of members that were not watched at all", () => {
    const lastFlow = { m2: "2026-11-18T10:00:00Z", removed: "2025-11-18T10:00:00Z" };
    expect(byDay(list([coverage()], { lastFlow })).rows.map(({ cluster }) => cluster)).toEqual(["m1", "m2"]);
    expect(byDay(list([coverage()]), ["m3"]).rows.map(({ cluster }) => cluster)).toEqual(["m3"]);
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
    const of = list([coverage({ lost: 5 }), coverage({ cluster: "m2", gapSeconds: 60 }), coverage({ cluster: "m3" })]);
    expect(missing(of)).toEqual({ known: true, lost: 5, unwatched: 1, unwatchedSeconds: 60, clusters: ["m1", "m2"] });
    expect(missing(of, ["m3"])).toEqual({ known: true, lost: 0, unwatched: 0, unwatchedSeconds: 0, clusters: [] });
  });

  it.each([
    ["time in which a member was not watched", [coverage({ watchedSeconds: 79_200 })], {}, { unwatched: 1, unwatchedSeconds: 7_200, clusters: ["m1"] }],
    ["a day without coverage", [coverage()], { since: "2026-11-19T00:00:00Z" }, { unwatched: 1, unwatchedSeconds: 86_400, clusters: ["m1"] }],
    ["a member without coverage", [coverage()], { lastFlow: { m1: oneDay.until, m2: "2026-11-18T10:00:00Z" } }, { unwatched: 1, unwatchedSeconds: 86_400, clusters: ["m2"] }],
    ["a gap shorter than a minute", [coverage({ gapSeconds: 5 })], {}, { unwatched: 1, unwatchedSeconds: 5, clusters: ["m1"] }],
    ["not the seconds in which a collector restarts", [coverage({ watchedSeconds: 86_360 })], {}, { unwatched: 0, clusters: [] }],
    ["that nothing was watched", [], {}, { known: false, clusters: [] }],
  ])("counts %s", (_, items, over, want) => {
    expect(missing(list(items, over))).toMatchObject(want);
  });
});
