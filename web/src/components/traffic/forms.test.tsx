import { render } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import type { TrafficMap } from "../../api/types";
import { fittedScroll, trafficKinds, trafficPicture } from "../../lib/traffic-map";
import type { TrafficKind } from "../../lib/traffic-map";
import { formOf } from "./forms";
import { KindSwatch } from "./KindSwatch";
import { trafficPainter } from "./paint";
import type { Palette } from "./paint";

const palette: Palette = { text: "text", muted: "muted", page: "page", line: "line", accent: "accent", bad: "bad", ok: "ok", kinds: { allowed: "allowed", audited: "audited", refused: "refused", unmanaged: "unmanaged", granted: "granted" }, font: "Inter" };

/** drawn returns the strokes of strands with which links between two names are drawn: the kind, whether it is dashed, and whether it removes its middle. */
function drawn(links: number): { kind: string; dashed: boolean; opening: boolean }[] {
  const strokes: { kind: string; dashed: boolean; opening: boolean }[] = [];
  const state: Record<string, unknown> = { globalCompositeOperation: "source-over" };
  let dash: number[] = [];
  let curved = false;
  const context = new Proxy(state, {
    get: (target, key) => {
      if (key === "canvas") return { width: 900, height: 600 };
      if (key === "measureText") return (text: string) => ({ width: text.length * 6 });
      if (key === "setLineDash") return (next: number[]) => void (dash = next);
      if (key === "beginPath") return () => void (curved = false);
      if (key === "bezierCurveTo") return () => void (curved = true);
      if (key === "stroke") return () => void (curved && strokes.push({ kind: String(state.strokeStyle), dashed: dash.length > 0, opening: state.globalCompositeOperation === "destination-out" }));
      return typeof key === "string" && key in target ? target[key] : () => undefined;
    },
  }) as unknown as CanvasRenderingContext2D;
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(context as never);
  const map: TrafficMap = {
    available: true, since: "", until: "", teams: [], total: links, cut: false,
    nodes: [{ name: "r", title: "r", kind: "resource" }, ...Array.from({ length: links }, (_, index) => ({ name: `a${index}`, title: `a${index}`, kind: "application" as const }))],
    links: Array.from({ length: links }, (_, index) => ({ from: index + 1, to: 0, lastSeen: "2026-11-20T10:00:00Z", ...[{ allowed: 90 }, { audited: 90 }, { defaultDenied: 90 }, { unmanaged: 90 }, { granted: true }][index % 5] })),
  };
  const picture = trafficPicture(map, { level: "resource", toggled: new Set(), hidden: new Set(), team: undefined });
  const labels = picture.nodes.map(({ title }) => ({ text: title, number: "" }));
  const size = { width: 900, height: 600 };
  trafficPainter()(context, { picture, labels, headers: picture.headers.map(() => ""), scroll: fittedScroll(picture, size.height), size, palette, active: undefined, near: undefined, marks: new Map() });
  return strokes;
}

describe("the form of a kind of traffic", () => {
  it("is dashed only for refused traffic", () => {
    for (const width of [0.6, 3, 4, 8, 12]) expect(trafficKinds.filter((kind) => formOf(kind, width).dash.length > 0)).toEqual(["refused"]);
  });

  it("is a full line for allowed, a double one for audited and a hollow one with thin edges for unmanaged traffic", () => {
    for (const width of [4, 8, 12]) {
      const rail = (kind: TrafficKind) => (width - formOf(kind, width).opening) / 2;
      expect(formOf("allowed", width).opening).toBe(0);
      expect(formOf("audited", width).tint).toBe(0);
      expect(formOf("unmanaged", width).tint).toBeGreaterThan(0);
      expect(rail("audited")).toBeGreaterThan(rail("unmanaged"));
      expect(rail("unmanaged")).toBe(1);
      expect(formOf("audited", width).opening).toBeGreaterThan(1);
    }
  });

  it("has no opening that nobody could see", () => {
    for (const kind of trafficKinds) expect(formOf(kind, 2).opening).toBe(0);
  });

  it("is the same in the legend, where it differs for each kind that was seen", () => {
    const forms = trafficKinds.map((kind) => render(<KindSwatch kind={kind} />).container.querySelector("svg")?.dataset.form);
    expect(Object.fromEntries(trafficKinds.map((kind, index) => [kind, forms[index]]))).toEqual({ granted: "full", allowed: "full", unmanaged: "hollow", audited: "double", refused: "dashed" });
  });
});

describe("the picture", () => {
  it("draws each kind in its form", () => {
    const strokes = drawn(10);
    expect(strokes.filter(({ dashed }) => dashed).map(({ kind }) => kind)).toEqual(["refused"]);
    expect(strokes.filter(({ opening }) => opening).map(({ kind }) => kind)).toEqual(["unmanaged", "audited"]);
    expect(new Set(strokes.map(({ kind }) => kind))).toEqual(new Set(trafficKinds));
  });

  it("draws thousands of lines once each, without dashes and openings", () => {
    const strokes = drawn(3_000);
    expect(strokes.some(({ dashed, opening }) => dashed || opening)).toBe(false);
    expect(strokes).toHaveLength(trafficKinds.length);
  });
});
