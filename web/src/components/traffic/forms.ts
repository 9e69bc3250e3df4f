/** The forms of the lines of the traffic map and of the access map, which distinguish the kinds without colors. Shared by the pictures and the legend. */
import type { TrafficKind } from "../../lib/traffic-map";

/** Form describes how a line of a width is drawn, in pixels. */
export interface Form {
  /** The lengths of dashes and gaps; empty if the line is solid. */
  dash: number[];
  /** The width of the opening along the middle of the line; 0 if it has none. */
  opening: number;
  /** The opacity of what remains in the opening, from 0 to 1. */
  tint: number;
}

/** leastOpened is the width in pixels from which an opening can be seen. */
const leastOpened = 3;
/** edge is the width in pixels of the two edges of a hollow line. */
const edge = 1;

const plain: Form = { dash: [], opening: 0, tint: 0 };

/**
 * formOf returns the form of a kind: allowed traffic is a full line, audited traffic a double line, unmanaged traffic a hollow line with thin edges, and only
 * refused traffic is dashed, so that the picture stays calm. An unused grant is full, too, and told by its width.
 */
export function formOf(kind: TrafficKind, width: number): Form {
  if (kind === "refused") return { ...plain, dash: [Math.max(10, width * 2), Math.max(4, width * 0.6)] };
  if (width < leastOpened) return plain;
  if (kind === "audited") return { ...plain, opening: width * 0.38 };
  if (kind === "unmanaged") return { ...plain, opening: width - 2 * edge, tint: 0.15 };
  return plain;
}

/** openMiddle removes the middle of the current path, which was drawn, together with what is below it, so that crossings stay readable. */
export function openMiddle(context: CanvasRenderingContext2D, { opening, tint }: Form) {
  if (opening === 0) return;
  context.globalCompositeOperation = "destination-out";
  context.globalAlpha = 1 - tint;
  context.lineWidth = opening;
  context.stroke();
  context.globalCompositeOperation = "source-over";
}
