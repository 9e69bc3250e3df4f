import { describe, expect, it } from "vitest";
import type { FlowSeries } from "../api/types";
import { stepsOf, totalsOf } from "./series";

const series = (over: Partial<FlowSeries>): FlowSeries => ({ available: true, since: "2026-11-21T10:00:00Z", until: "2026-11-21T10:03:00Z", stepSeconds: 60, points: [], ...over });
const at = (minute: number) => `2026-11-21T10:0${minute}:00Z`;

describe("steps", () => {
  it("have a row also where nothing happened", () => {
    const steps = stepsOf(series({ points: [{ start: at(1), decision: "denied", count: 2 }, { start: at(1), decision: "allowed", count: 5 }] }));
    expect(steps).toEqual([{ start: Date.parse(at(0)) }, { start: Date.parse(at(1)), denied: 2, allowed: 5 }, { start: Date.parse(at(2)) }]);
  });

  it.each([
    ["a last step that is not whole counts", series({ until: "2026-11-21T10:02:10Z" }), 3],
    ["a window without length has none", series({ until: at(0) }), 0],
    ["what lies outside adds none", series({ points: [{ start: at(5), decision: "denied", count: 1 }] }), 3],
  ])("%s", (_, input, want) => {
    const steps = stepsOf(input);
    expect(steps).toHaveLength(want);
    expect(steps.every((step) => step.denied === undefined)).toBe(true);
  });
});

describe("totals", () => {
  it("name only what occurs, in the order of the stack", () => {
    expect(totalsOf(series({ points: [{ start: at(0), decision: "denied", count: 2 }, { start: at(1), decision: "allowed", count: 1 }, { start: at(2), decision: "denied", count: 3 }] }))).toEqual([
      { decision: "allowed", count: 1 },
      { decision: "denied", count: 5 },
    ]);
  });
});
