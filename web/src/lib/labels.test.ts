import { describe, expect, it } from "vitest";
import { cutMiddle, nameFitter, reserve } from "./labels";

const each = (text: string) => [...text].length;

describe("names beside the nodes of a map", () => {
  it.each([
    { why: "fits", text: "Billing", width: 7, want: "Billing" },
    { why: "differs at its end", text: "Payments ledger, Europe", width: 15, want: "Payments…Europe" },
    { why: "has little space", text: "Payments", width: 3, want: "P…s" },
    { why: "has space for nothing", text: "Payments", width: 0, want: "…" },
    { why: "has characters of two code units", text: "𠮷𠮷𠮷𠮷𠮷𠮷", width: 3, want: "𠮷…𠮷" },
    { why: "is Chinese", text: "结算服务欧洲区", width: 5, want: "结算…洲区" },
    { why: "is empty", text: "", width: 0, want: "" },
  ])("keep their beginning and their end: one that $why", ({ text, width, want }) => {
    const out = cutMiddle(text, width, each);
    expect(out).toBe(want);
    if (width > 0) expect(each(out)).toBeLessThanOrEqual(width);
  });

  it("stay distinguishable if only their ends differ", () => {
    const [europe, asia] = ["Europe", "Asia"].map((region) => cutMiddle(`Payments ledger reconciliation, ${region}`, 16, each));
    expect(europe).not.toBe(asia);
  });

  it("are measured once for the same font and width", () => {
    let measured = 0;
    const context = { font: "12px Inter", measureText: (text: string) => ({ width: ((measured += 1), text.length) }) } as unknown as CanvasRenderingContext2D;
    const fit = nameFitter();
    const [first, before] = [fit(context, "Payments", 5), measured];
    expect([first, fit(context, "Payments", 5), measured]).toEqual(["Pa…ts", "Pa…ts", before]);
    context.font = "13px Inter";
    fit(context, "Payments", 5);
    expect(measured).toBeGreaterThan(before);
  });

  it("have a distance from each other", () => {
    const taken: number[] = [];
    expect([40, 10, 24, 25, 54, 55, -10].map((y) => reserve(taken, y, 15))).toEqual([true, true, false, true, false, true, true]);
    expect(taken).toEqual([-10, 10, 25, 40, 55]);
  });
});
