import { describe, expect, it } from "vitest";
import type { RolloutCard } from "../api/types";
import { card } from "../testing/fixtures";
import { verbatim } from "../testing/render";
import { advanceBody, anchors, clustersOf, columns, lacking, missingOf, split, usualTarget, verbOf } from "./rollout";

const of = (id: string, over: Partial<RolloutCard> = {}) => card({ resource: { id, name: id, title: id }, ...over });
const ids = (cards: RolloutCard[]) => cards.map(({ resource }) => resource.id);

describe("the columns", () => {
  it("show a stopped one first, then the readiest", () => {
    const { refine, enforce, observe } = columns([of("a", { score: 40 }), of("b", { score: 90 }), of("c", { score: undefined }), of("d", { score: 10, guard: { enabled: true, reopens: false, limit: 20, windowSeconds: 300, stoppedAt: "2026-11-21T10:00:00Z" } }), of("e", { stage: "enforce" })]);
    expect(ids(refine)).toEqual(["d", "b", "a", "c"]);
    expect(ids(enforce)).toEqual(["e"]);
    expect(observe).toEqual([]);
  });

  it("show what is used before what is not", () => {
    expect(ids(columns([of("a", { clients: 0 }), of("b", { clients: 3 })]).refine)).toEqual(["b", "a"]);
  });
});

describe("what is missing", () => {
  it("is not said twice", () => {
    expect(missingOf(of("a", { missing: [verbatim("Adopt them."), verbatim("Wait.")], hint: { code: "wait", message: verbatim("Wait.") } }))).toEqual([verbatim("Adopt them.")]);
  });
});

describe("a hint", () => {
  const hinted = (code: NonNullable<RolloutCard["hint"]>["code"], over: Partial<RolloutCard> = {}) => of("a", { hint: { code, message: verbatim("") }, ...over });

  it.each([
    ["onboard", "advance"],
    ["announce", "announce"],
    ["enforce", "advance"],
    ["stopped", "guard"],
    ["review", undefined],
    ["done", undefined],
  ] as const)("%s is done by %s", (code, want) => {
    expect(verbOf(hinted(code))).toBe(want);
  });

  it("offers nothing that the reader may not do", () => {
    expect(verbOf(hinted("enforce", { can: { announce: false, advance: false, guard: false, toggle: false, override: false } }))).toBeUndefined();
  });

  it("leads to the clients or to the evidence", () => {
    expect([anchors.review, anchors.wait, anchors.done]).toEqual(["#proposal", "#evidence", undefined]);
  });
});

describe("a selection", () => {
  const may = { announce: true, advance: true, guard: true, toggle: true, override: false };
  it("is split by what may be done with each", () => {
    const { able, others } = split([of("a", { can: may }), of("b", { can: { ...may, advance: false } }), card({ resource: { name: "n", title: "n" }, can: may })], "advance");
    expect([ids(able), others.length]).toEqual([["a"], 2]);
  });

  it.each([
    ["what is observed is audited next", [of("a", { stage: "observe" })], "initial"],
    ["what was announced is enforced next", [of("a", { stage: "announced" })], "enforce"],
    ["the hint knows better", [of("a", { stage: "enforce", hint: { code: "stopped", next: "initial", message: verbatim("") } })], "initial"],
    ["a mixed one may be enforced", [of("a", { stage: "observe" }), of("b", { stage: "refine" })], "enforce"],
  ] as const)("%s", (_, cards, want) => {
    expect(usualTarget([...cards])).toBe(want);
  });

  it("counts those without enough evidence, and those with unknown evidence", () => {
    expect(ids(lacking([of("a", { score: 81, enough: false }), of("b", { score: 70, enough: true }), of("c", { score: undefined, enough: undefined })]))).toEqual(["a", "c"]);
  });

  it("names each member once", () => {
    expect(clustersOf([of("a"), of("b", { clusters: [{ cluster: "m3", state: "Realized" }] })])).toEqual(["m1", "m2", "m3"]);
  });
});

describe("the change to replay", () => {
  it.each([
    ["in every member", [], { resource: "a", mode: "Enforce" }],
    ["in one member only", ["m1"], { resource: "a", mode: "Audit", clusterModes: { m1: "Enforce" } }],
  ] as const)("%s", (_, clusters, item) => {
    expect(advanceBody("mode", [of("a")], "enforce", [...clusters])).toEqual({ kind: "mode", items: [item] });
  });

  it("leaves members that differ already as they are", () => {
    const staged = of("a", { clusters: [{ cluster: "m1", state: "Realized", mode: "Enforce" }, { cluster: "m2", state: "Realized", mode: "Audit" }] });
    expect(advanceBody("mode", [staged], "enforce", ["m2"])?.items).toEqual([{ resource: "a", mode: "Audit", clusterModes: { m1: "Enforce", m2: "Enforce" } }]);
  });

  it.each([
    ["in every member", [], { resource: "b", mode: "Enforce" }],
    ["in one member only, watched in the others", ["m1"], { resource: "b", mode: "Observe", clusterModes: { m1: "Enforce" } }],
  ] as const)("is an onboarding of what is not onboarded, %s", (_, clusters, item) => {
    const cards = [of("a"), of("b", { onboarded: false, mode: "Observe", clusters: [] })];
    expect(advanceBody("onboard", cards, "enforce", [...clusters])).toEqual({ kind: "onboard", items: [item] });
    expect(advanceBody("mode", cards, "enforce", [])?.items?.map(({ resource }) => resource)).toEqual(["a"]);
  });

  it("is none of a kind that no card needs", () => {
    expect(advanceBody("onboard", [of("a")], "initial", [])).toBeUndefined();
  });
});
