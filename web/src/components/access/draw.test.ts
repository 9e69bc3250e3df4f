import { describe, expect, it } from "vitest";
import { rowHeight } from "../../lib/access-graph";
import { fitted, heightOf } from "./draw";

const graph = (rows: number) => ({ height: rows * rowHeight });
const windowHeight = 860;

describe("the canvas of the access map", () => {
  it("is as high as a small graph", () => {
    for (const rows of [5, 12, 30]) {
      const height = heightOf(graph(rows), 990, windowHeight);
      const { k, y } = fitted(graph(rows), { width: 990, height }, false);
      expect(rows * rowHeight * k).toBeLessThanOrEqual(height);
      expect(height - rows * rowHeight * k).toBeLessThan(60);
      expect(y).toBeGreaterThanOrEqual(0);
    }
  });

  it("has the same height for all larger graphs, which keep their size", () => {
    for (const rows of [60, 1_500]) {
      const height = heightOf(graph(rows), 990, windowHeight);
      expect(height).toBe(516);
      expect(fitted(graph(rows), { width: 990, height }, false).k).toBeCloseTo(990 / 880);
    }
  });

  it("is zoomed to 1.25 at most, and filled to its width all the same", () => {
    for (const width of [340, 800, 990, 1_600, 2_400]) {
      for (const rows of [1, 20, 1_500]) {
        for (const whole of [true, false]) expect(fitted(graph(rows), { width, height: heightOf(graph(rows), width, windowHeight) }, whole).k).toBeLessThanOrEqual(1.25);
      }
    }
    expect(fitted(graph(5), { width: 1_600, height: 200 }, false).x).toBeCloseTo(230 * 1.25);
  });

  it("shows all of a large graph when it is fitted", () => {
    const { k } = fitted(graph(1_000), { width: 990, height: 516 }, true);
    expect(k * 1_000 * rowHeight).toBeLessThanOrEqual(516);
  });
});
