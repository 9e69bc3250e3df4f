import { describe, expect, it } from "vitest";
import { enumeration, listParts, listText } from "./list";

describe("lists of names", () => {
  it.each([
    { why: "Latin names", names: ["m1", "m2"], text: "m1 和 m2" },
    { why: "three names: a comma needs no space", names: ["m1", "m2", "Payments"], text: "m1、m2 和 Payments" },
    { why: "Chinese names", names: ["支付", "结算"], text: "支付和结算" },
    { why: "a Latin name before a Chinese one", names: ["m1", "结算"], text: "m1 和结算" },
    { why: "a Chinese name before a digit", names: ["支付", "2 号"], text: "支付和 2 号" },
    { why: "a name in which both stand side by side stays as it is", names: ["订单cache", "m2"], text: "订单cache 和 m2" },
    { why: "a name that ends with a bracket", names: ["Billing (777)", "Reports (676)"], text: "Billing (777) 和 Reports (676)" },
    { why: "one name", names: ["m1"], text: "m1" },
    { why: "no name", names: [], text: "" },
  ])("are spaced in Chinese: $why", ({ names, text }) => {
    expect(listText(names, "zh")).toBe(text);
  });

  it("are joined by or, too", () => {
    expect(listText(["alice", "bob"], "zh", { type: "disjunction" })).toBe("alice 或 bob");
    expect(listText(["alice", "bob"], "en", { type: "disjunction" })).toBe("alice or bob");
  });

  it("are in English as they were", () => {
    expect(listText(["m1", "m2", "m3"], "en")).toBe("m1, m2, and m3");
    expect(listText(["m1", "m2"], "en", { style: "narrow" })).toBe("m1, m2");
  });

  it("tell the elements from what is between them", () => {
    expect(listParts(["m1", "结算"], "zh")).toEqual([{ index: 0, text: "m1" }, { index: undefined, text: " 和" }, { index: 1, text: "结算" }]);
  });

  it.each<[language: string, limit: number | undefined, text: string]>([
    ["en", undefined, "m1, m2, m3"],
    ["zh", undefined, "m1、m2、m3"],
    ["en", 2, "m1, m2 +1"],
    ["zh", 2, "m1、m2 +1"],
    ["en", 3, "m1, m2, m3"],
  ])("are enumerated in %s with a limit of %s as %s", (language, limit, text) => {
    expect(enumeration(["m1", "m2", "m3"], language, limit)).toBe(text);
  });
});
