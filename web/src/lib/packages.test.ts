import { describe, expect, it } from "vitest";
import { durationOf, packageBody, packageRequestBody } from "./packages";
import type { PackageForm } from "./packages";

const form: PackageForm = { name: "pay", title: " Payments ", description: "", team: "pub", duration: durationOf(86_400), chain: "owners", parts: [{ resource: "mid", actions: ["connect"] }], reason: "" };

describe("durationOf", () => {
  it.each<[string, number | undefined, ReturnType<typeof durationOf>]>([
    ["an offered number of days", 90 * 86_400, { duration: "90", customAmount: 12, customUnit: "hours" }],
    ["other days", 14 * 86_400, { duration: "custom", customAmount: 14, customUnit: "days" }],
    ["hours", 3_600, { duration: "custom", customAmount: 1, customUnit: "hours" }],
    ["no end", undefined, { duration: "revoked", customAmount: 12, customUnit: "hours" }],
  ])("selects what the form offers for %s", (_, seconds, want) => {
    expect(durationOf(seconds)).toEqual(want);
  });
});

describe("packageBody", () => {
  it("returns the version that is requested", () => {
    expect(packageBody(form)).toEqual({
      kind: "package",
      items: [{ package: { name: "pay", title: "Payments", team: "pub", chain: "owners", durationSeconds: 86_400, resources: [{ resource: "mid", actions: ["connect"] }] } }],
    });
    expect(packageBody({ ...form, toHolders: true })?.items[0]?.package).toHaveProperty("toHolders", true);
    expect(packageBody({ ...form, toHolders: false })?.items[0]?.package).not.toHaveProperty("toHolders");
    expect(packageBody({ ...form, duration: durationOf(undefined) })?.items[0]?.package).not.toHaveProperty("durationSeconds");
  });

  it.each<[string, Partial<PackageForm>]>([
    ["a name with capitals", { name: "Pay" }],
    ["no title", { title: " " }],
    ["no team", { team: "" }],
    ["no resources", { parts: [] }],
    ["a resource without actions", { parts: [{ resource: "mid", actions: [] }] }],
    ["a duration that is too short", { duration: { duration: "custom", customAmount: undefined, customUnit: "hours" } }],
  ])("returns nothing for %s", (_, change) => {
    expect(packageBody({ ...form, ...change })).toBeUndefined();
  });
});

describe("packageRequestBody", () => {
  const of = { name: "pay", version: 3, durationSeconds: 86_400 };
  it("names the version that was read, and nothing of its content", () => {
    expect(packageRequestBody(of, "a", durationOf(3_600))).toEqual({ items: [{ application: "a" }], package: { name: "pay", version: 3 }, durationSeconds: 3_600 });
  });
  it("returns nothing without an application, or for longer than the package allows", () => {
    expect(packageRequestBody(of, "", durationOf(3_600))).toBeUndefined();
    expect(packageRequestBody(of, "a", durationOf(90_000))).toBeUndefined();
    expect(packageRequestBody(of, "a", durationOf(undefined))).toBeUndefined();
  });
});
