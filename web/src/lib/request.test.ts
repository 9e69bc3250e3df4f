import { describe, expect, it } from "vitest";
import { accessBody, accessErrors, accessPairs, atAnyHour, accessPreview, basketLimit, durationError, isWrong, modeBody, objectBody, parseTarget, reasonError, textLimit, withoutPair } from "./request";
import type { AccessErrors, AccessRequest, DurationValue, ModeRequest } from "./request";

const week: DurationValue = { duration: "7", customAmount: undefined, customUnit: "hours" };
const complete: AccessRequest = { applications: ["app-888"], basket: [{ resource: "bobs-cluster", actions: ["redis:connect"] }], duration: week };
const custom = (customAmount: number | undefined, customUnit: "hours" | "days" = "days"): DurationValue => ({ duration: "custom", customAmount, customUnit });

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const resources = (count: number) => names("rsc", count).map((resource) => ({ resource, actions: ["redis:connect"] }));

describe("a request for access", () => {
  const cases: { reason: string; form: Partial<AccessRequest>; cap?: number; want: AccessErrors }[] = [
    { reason: "a complete request is right", form: {}, want: { actions: [] } },
    { reason: "each missing field is named", form: { applications: [], basket: [] }, want: { application: "missing", basket: "missing", actions: [] } },
    { reason: "each resource needs an action", form: { basket: [...complete.basket, { resource: "orders", actions: [] }] }, want: { actions: ["orders"] } },
    { reason: "no end is a duration", form: { duration: { ...week, duration: "revoked" } }, want: { actions: [] } },
    { reason: "no end is longer than any cap", form: { duration: { ...week, duration: "revoked" } }, cap: 86_400, want: { actions: [], duration: "cap" } },
    { reason: "a request may leave out some pairs, but not all", form: { leftOut: [{ application: "app-888", resource: "bobs-cluster" }] }, want: { actions: [], pairs: "none" } },
    { reason: "as many pairs as a request can have are right", form: { applications: names("app", 10), basket: resources(5) }, want: { actions: [] } },
    { reason: "more pairs than a request can have are too many", form: { applications: names("app", 11), basket: resources(5) }, want: { actions: [], pairs: "many" } },
    { reason: "a cap holds", form: {}, cap: 86_400, want: { actions: [], duration: "cap" } },
  ];
  for (const { reason, form, cap, want } of cases) {
    it(reason, () => {
      const errors = accessErrors({ ...complete, ...form }, cap);
      expect(errors).toEqual(want);
      expect(isWrong(errors)).toBe(JSON.stringify(want) !== '{"actions":[]}');
    });
  }

  it("carries every resource and the duration in seconds", () => {
    expect(accessBody({ ...complete, basket: [...complete.basket, { resource: "orders", actions: ["mysql:read"] }] })).toEqual({
      items: [
        { application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] },
        { application: "app-888", resource: "orders", actions: ["mysql:read"] },
      ],
      durationSeconds: 604_800,
    });
  });

  it("has an item for each resource and application, without those that are left out", () => {
    const request: AccessRequest = { ...complete, applications: ["app-888", "app-777"], basket: [...complete.basket, { resource: "orders", actions: ["mysql:read"] }], leftOut: [{ application: "app-888", resource: "orders" }] };
    expect(accessBody(request).items).toEqual([
      { application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] },
      { application: "app-777", resource: "bobs-cluster", actions: ["redis:connect"] },
      { application: "app-777", resource: "orders", actions: ["mysql:read"] },
    ]);
    expect(accessPairs(request).map(({ application, resource }) => `${application} ${resource}`)).toEqual(["app-888 bobs-cluster", "app-777 bobs-cluster", "app-777 orders"]);
  });

  it("leaves out the resource of the only application, and one pair of several", () => {
    const pair = { application: "app-888", resource: "bobs-cluster" };
    expect(withoutPair(complete, pair)).toEqual({ basket: [], leftOut: [] });
    expect(withoutPair({ ...complete, applications: ["app-888", "app-777"] }, pair)).toEqual({ basket: complete.basket, leftOut: [pair] });
  });

  it("is not previewed if it is larger than a request can be", () => {
    expect(accessPreview({ ...complete, applications: names("app", 25), basket: resources(2) })?.items).toHaveLength(basketLimit);
    expect(accessPreview({ ...complete, applications: names("app", 26), basket: resources(2) })).toBeUndefined();
  });

  it("has no duration when it lasts until revoked", () => {
    expect(accessBody({ ...complete, duration: { ...week, duration: "revoked" } })).not.toHaveProperty("durationSeconds");
  });

  it("restricts each item to the hours, and break-glass access to none", () => {
    const hours = { timeZone: "UTC", periods: [{ days: ["Fri" as const], from: "18:00", to: "00:00" }] };
    const body = accessBody({ ...complete, hours });
    expect(body.items[0]?.hours).toEqual({ ...hours, periods: [{ ...hours.periods[0], to: "24:00" }] });
    expect(atAnyHour(body)).toEqual(accessBody(complete));
    expect(accessErrors({ ...complete, hours: { ...hours, periods: [] } }).hours).toBe("incomplete");
    expect(accessPreview({ ...complete, hours: { ...hours, periods: [] } })).toBeUndefined();
  });

  it("is previewed as far as it goes", () => {
    expect(accessPreview({ ...complete, basket: [{ resource: "orders", actions: [] }, ...complete.basket] })?.items.map((item) => item.resource)).toEqual(["bobs-cluster"]);
    expect(accessPreview({ ...complete, basket: [] })).toBeUndefined();
    expect(accessPreview({ ...complete, applications: [] })).toBeUndefined();
    expect(accessPreview({ ...complete, duration: custom(undefined) })).toBeUndefined();
  });
});

describe("a duration", () => {
  it.each([
    ["a custom one needs an amount", custom(undefined), "range"],
    ["a year and a day is the longest", custom(366), undefined],
    ["more than that is refused", custom(367), "range"],
    ["less than five minutes is refused", custom(0.05, "hours"), "range"],
  ] as const)("%s", (_, value, want) => expect(durationError(value)).toBe(want));
});

describe("a reason", () => {
  it.each([
    ["is needed", "  ", "missing"],
    ["has a limit", "x".repeat(textLimit + 1), "long"],
    ["is free otherwise", " so ", undefined],
  ] as const)("%s", (_, text, want) => expect(reasonError(text)).toBe(want));
});

describe("a change of mode", () => {
  const base: ModeRequest = { kind: "mode", resource: "bobs-cluster", mode: "Enforce", clusterModes: {} };
  it.each([
    ["needs a mode", { mode: undefined }, undefined],
    ["needs a resource", { resource: "" }, undefined],
    ["takes no mode along when it ends protection", { kind: "offboard" }, { kind: "offboard", items: [{ resource: "bobs-cluster" }] }],
    ["carries only exceptions that are some", { clusterModes: { m1: "Enforce", m2: "Audit" } }, { kind: "mode", items: [{ resource: "bobs-cluster", mode: "Enforce", clusterModes: { m2: "Audit" } }] }],
    ["an override of the evidence goes with what is enforced", { mode: "Enforce", override: " Monday " }, { kind: "mode", items: [{ resource: "bobs-cluster", mode: "Enforce" }], override: { reason: "Monday" } }],
    ["also in one member", { mode: "Audit", clusterModes: { m1: "Enforce" }, override: "Monday" }, { kind: "mode", items: [{ resource: "bobs-cluster", mode: "Audit", clusterModes: { m1: "Enforce" } }], override: { reason: "Monday" } }],
    ["an override without a reason is none", { mode: "Enforce", override: " " }, { kind: "mode", items: [{ resource: "bobs-cluster", mode: "Enforce" }] }],
    ["what is not enforced needs none", { mode: "Audit", override: "Monday" }, { kind: "mode", items: [{ resource: "bobs-cluster", mode: "Audit" }] }],
  ] as const)("%s", (_, over, want) => expect(modeBody({ ...base, ...over } as ModeRequest)).toEqual(want));
});

describe("a change of an object", () => {
  it("needs a spec unless it deletes", () => {
    expect(objectBody("class", { kind: "ResourceClass", name: "redis", verb: "update", spec: " " })).toBeUndefined();
    expect(objectBody("class", { kind: "ResourceClass", name: "redis", verb: "delete", spec: "old" })?.items).toEqual([{ object: { kind: "ResourceClass", name: "redis", verb: "delete" } }]);
  });
});

describe("a target in a link", () => {
  it.each([
    ["T-12/1", { ticket: "T-12", item: 1 }],
    ["T-12", { ticket: "T-12", item: 0 }],
    ["T-12/x", undefined],
    ["12", undefined],
    [null, undefined],
  ])("%s", (text, want) => expect(parseTarget(text)).toEqual(want));
});
