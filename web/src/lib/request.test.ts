import { describe, expect, it } from "vitest";
import { durationSeconds, previewBody, reasonLimit, toBody, validate } from "./request";
import type { RequestErrors, RequestForm } from "./request";

const complete: RequestForm = { application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"], duration: "7", customAmount: undefined, customUnit: "hours", reason: " needed " };

describe("validate", () => {
  const cases: { reason: string; form: Partial<RequestForm>; want: RequestErrors }[] = [
    { reason: "a complete request is right", form: {}, want: {} },
    { reason: "each missing field is named", form: { application: "", resource: "", actions: [], reason: "  " }, want: { application: "missing", resource: "missing", actions: "missing", reason: "missing" } },
    { reason: "no end is a duration", form: { duration: "revoked" }, want: {} },
    { reason: "a custom duration needs an amount", form: { duration: "custom" }, want: { duration: "range" } },
    { reason: "a year and a day is the longest", form: { duration: "custom", customAmount: 366, customUnit: "days" }, want: {} },
    { reason: "more than that is refused", form: { duration: "custom", customAmount: 367, customUnit: "days" }, want: { duration: "range" } },
    { reason: "less than five minutes is refused", form: { duration: "custom", customAmount: 0.05, customUnit: "hours" }, want: { duration: "range" } },
    { reason: "a reason has a limit", form: { reason: "x".repeat(reasonLimit + 1) }, want: { reason: "long" } },
  ];
  for (const { reason, form, want } of cases) it(reason, () => expect(validate({ ...complete, ...form })).toEqual(want));
});

describe("the request", () => {
  it("carries the duration in seconds and the reason without its margins", () => {
    expect(toBody(complete)).toEqual({ items: [{ application: "app-888", resource: "bobs-cluster", actions: ["redis:connect"] }], reason: "needed", durationSeconds: 604_800 });
  });
  it("has no duration when it lasts until revoked", () => {
    expect(toBody({ ...complete, duration: "revoked" })).not.toHaveProperty("durationSeconds");
    expect(durationSeconds({ duration: "revoked", customAmount: 3, customUnit: "days" })).toBeUndefined();
  });
  it("is previewed without a reason, but not without an action", () => {
    expect(previewBody({ ...complete, reason: "" })?.items).toHaveLength(1);
    expect(previewBody({ ...complete, actions: [] })).toBeUndefined();
  });
  it("asks for the same preview whatever the reason is", () => {
    expect(previewBody({ ...complete, reason: "one" })).toEqual(previewBody({ ...complete, reason: "two" }));
  });
});
