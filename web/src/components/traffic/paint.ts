/** Draws the traffic map on a canvas: 10,000 lines take tens of milliseconds there, and seconds as DOM elements. */
import { nameFitter, reserve } from "../../lib/labels";
import type { NameFitter } from "../../lib/labels";
import { padding, trafficKinds } from "../../lib/traffic-map";
import type { Bundle, Strand, TrafficHeader, TrafficKind, TrafficPicture, TrafficPlace, TrafficScroll } from "../../lib/traffic-map";
import { formOf, openMiddle } from "./forms";

/** Palette is the colors and the font with which the map is drawn. */
export interface Palette {
  text: string;
  muted: string;
  page: string;
  line: string;
  accent: string;
  bad: string;
  ok: string;
  kinds: Record<TrafficKind, string>;
  font: string;
}

/** kindColors contains the custom property of the color of each kind. */
export const kindColors: Record<TrafficKind, string> = { allowed: "--acp-ok-solid", audited: "--acp-warn-solid", refused: "--acp-bad-solid", unmanaged: "--acp-idle", granted: "--acp-idle-solid" };

/** paletteOf reads the palette from the styles of an element. */
export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim() || "#888";
  const kinds = Object.fromEntries(trafficKinds.map((kind) => [kind, of(kindColors[kind])])) as Palette["kinds"];
  return { text: of("--acp-text"), muted: of("--acp-muted"), page: of("--acp-raised"), line: of("--acp-line-strong"), accent: of("--acp-busy-solid"), bad: of("--acp-bad"), ok: of("--acp-ok"), kinds, font: style.fontFamily || "system-ui" };
}

/** Size is the size of the drawing in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** Columns are the positions of the two columns of nodes in pixels; names are outside of them. */
export interface Columns {
  left: number;
  right: number;
  /** The space for names. */
  margin: number;
}

/** columnsOf returns the columns of a drawing. On narrow screens, names get a larger part of it. */
export function columnsOf(width: number): Columns {
  const margin = width < 560 ? Math.max(92, width * 0.31) : Math.min(290, Math.max(170, width * 0.24));
  return { left: margin, right: width - margin, margin };
}

/** Marks are bundles that a change would affect. */
export type Marks = ReadonlyMap<number, "cut" | "let">;

/** Label is the text of a node. */
export interface Label {
  text: string;
  number: string;
}

/** Scene is everything that is drawn. */
export interface Scene {
  picture: TrafficPicture;
  labels: Label[];
  headers: string[];
  scroll: TrafficScroll;
  size: Size;
  palette: Palette;
  /** The bundle under the pointer, or that the keyboard or the URL selects. */
  active: number | undefined;
  /** The node under the pointer. */
  near: number | undefined;
  marks: Marks;
}

/** barWidth is the width in pixels of the bar that stands for a node. */
const barWidth = 6;
/** refusedGap is the space in pixels between the end of a refused strand and the resource. */
const refusedGap = 16;
/** mostDetailed is the number of strands above which they are drawn without dashes, openings and end bars, which take long to draw. */
const mostDetailed = 2_500;
/** labelSpacing is the least distance in pixels between two names. */
const labelSpacing = 15;

/**
 * opacityFactor returns the factor by which strands are more transparent, the more of them there are on a pixel of height, so that they do not become one
 * area. Audited and refused ones stay visible among thousands of others.
 */
function opacityFactor(kind: TrafficKind, { strands, height }: TrafficPicture, { k }: TrafficScroll): number {
  const factor = Math.min(1, Math.sqrt(900 / Math.max(1, strands.length)), (1.6 * height * k) / Math.max(1, strands.length));
  return kind === "refused" || kind === "audited" ? 0.3 + 0.7 * factor : factor;
}

const yOf = ({ top, k }: TrafficScroll, y: number) => padding + (y - top) * k;
const thin = (scroll: TrafficScroll, width: number) => Math.max(0.6, width * Math.min(1, scroll.k));

type Base = Pick<Scene, "picture" | "scroll" | "size" | "palette">;

/** strokes draws strands. Those of the same kind and about the same width are one path, because a change of the style takes longer than a line. */
function strokes(context: CanvasRenderingContext2D, { picture, scroll, size, palette }: Base, wanted: (strand: Strand) => boolean, alpha: (kind: TrafficKind, width: number) => number, wider = 0) {
  const { left, right } = columnsOf(size.width);
  const detailed = picture.strands.length <= mostDetailed || wider > 0;
  const batches = new Map<string, { kind: TrafficKind; width: number; strands: Strand[] }>();
  for (const strand of picture.strands) {
    if (!wanted(strand)) continue;
    const [y1, y2] = [yOf(scroll, strand.y1), yOf(scroll, strand.y2)];
    if ((y1 < -20 && y2 < -20) || (y1 > size.height + 20 && y2 > size.height + 20)) continue;
    const width = Math.round(strand.width);
    const key = `${strand.kind} ${width}`;
    const batch = batches.get(key) ?? { kind: strand.kind, width, strands: [] };
    batch.strands.push(strand);
    batches.set(key, batch);
  }
  for (const kind of trafficKinds) {
    for (const batch of batches.values()) {
      if (batch.kind !== kind) continue;
      const end = kind === "refused" && detailed ? right - refusedGap : right;
      const middle = (left + end) / 2;
      const width = thin(scroll, batch.width) + wider;
      const form = detailed ? formOf(kind, width) : undefined;
      context.strokeStyle = palette.kinds[kind];
      context.globalAlpha = alpha(kind, batch.width);
      context.lineWidth = width;
      context.lineCap = "butt";
      context.setLineDash(form?.dash ?? []);
      context.beginPath();
      for (const { y1, y2 } of batch.strands) {
        const [from, to] = [yOf(scroll, y1), yOf(scroll, y2)];
        context.moveTo(left, from);
        context.bezierCurveTo(middle, from, middle, to, end, to);
      }
      context.stroke();
      if (form) openMiddle(context, form);
      if (kind !== "refused" || !detailed) continue;
      // A refused strand ends at a bar in front of the resource, because its connections did not reach it.
      context.setLineDash([]);
      context.lineCap = "round";
      context.lineWidth = Math.max(1.5, Math.min(3, width * 0.5));
      context.beginPath();
      for (const { y2 } of batch.strands) {
        const half = Math.max(scroll.k < 0.4 ? 2 : 4, width / 2 + 2);
        context.moveTo(end + 1, yOf(scroll, y2) - half);
        context.lineTo(end + 1, yOf(scroll, y2) + half);
      }
      context.stroke();
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function clear(context: CanvasRenderingContext2D, size: Size) {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
}

const usualAlpha: Record<TrafficKind, number> = { granted: 0.5, allowed: 0.5, unmanaged: 0.8, audited: 0.9, refused: 0.9 };

const same = (a: Base, b: Base) => a.picture === b.picture && a.scroll.k === b.scroll.k && a.scroll.top === b.scroll.top && a.size.width === b.size.width && a.size.height === b.size.height && JSON.stringify(a.palette) === JSON.stringify(b.palette);

/** touched returns the nodes of the active bundle, or the node under the pointer and its neighbours. */
function touched({ picture, active, near, marks }: Scene): Set<number> | undefined {
  const out = new Set<number>();
  const include = (bundle: Bundle | undefined) => bundle && out.add(bundle.from).add(bundle.to);
  if (active !== undefined) include(picture.bundles[active]);
  else if (near !== undefined) {
    out.add(near);
    for (const bundle of picture.bundles) if (bundle.from === near || bundle.to === near) include(bundle);
  } else if (marks.size > 0) for (const index of marks.keys()) include(picture.bundles[index]);
  else return undefined;
  return out;
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene, strong: Set<number> | undefined, fit: NameFitter) {
  const { picture, labels, headers, scroll, size, palette, near } = scene;
  const { left, right, margin } = columnsOf(size.width);
  const taken = { client: [] as number[], server: [] as number[] };
  const visible = (y: number) => y > -8 && y < size.height + 8;
  context.textBaseline = "middle";

  picture.nodes.forEach((node, index) => {
    const y = yOf(scroll, node.y);
    const height = Math.max(3, node.height * scroll.k);
    if (y + height / 2 < 0 || y - height / 2 > size.height) return;
    context.globalAlpha = strong && !strong.has(index) ? 0.3 : 1;
    context.fillStyle = index === near ? palette.accent : node.single ? palette.muted : palette.text;
    context.beginPath();
    context.roundRect(node.side === "client" ? left - barWidth : right, y - height / 2, barWidth, height, Math.min(3, height / 2));
    context.fill();
  });

  const text = (side: TrafficPlace["side"], y: number, label: Label, weight: number, color: string, alpha: number) => {
    const edge = side === "client" ? left - barWidth - 8 : right + barWidth + 8;
    const room = margin - barWidth - 18;
    context.textAlign = side === "client" ? "right" : "left";
    context.globalAlpha = alpha;
    // Names begin at the nodes, so that they form a column; numbers follow on the outer side.
    context.font = `500 11px ${palette.font}`;
    const number = label.number && room > 120 ? label.number : "";
    const beside = number ? context.measureText(number).width + 8 : 0;
    context.font = `${weight} 12.5px ${palette.font}`;
    context.fillStyle = color;
    const shown = fit(context, label.text, room - beside);
    context.fillText(shown, edge, y);
    if (!number) return;
    const width = context.measureText(shown).width + 8;
    context.font = `500 11px ${palette.font}`;
    context.fillStyle = palette.muted;
    context.fillText(number, side === "client" ? edge - width : edge + width, y + 0.5);
  };

  const order = picture.nodes.map((_, index) => index).sort((a, b) => Number(strong?.has(b) ?? false) - Number(strong?.has(a) ?? false) || (picture.nodes[b]?.volume ?? 0) - (picture.nodes[a]?.volume ?? 0) || a - b);
  const name = (index: number) => {
    const node = picture.nodes[index];
    const label = labels[index];
    if (!node || !label) return;
    const y = yOf(scroll, node.y);
    if (!visible(y) || !reserve(taken[node.side], y, labelSpacing)) return;
    const lit = strong?.has(index) ?? false;
    text(node.side, y, label, lit || !node.single ? 600 : 450, index === near ? palette.accent : palette.text, strong && !lit ? 0.4 : 1);
  };
  for (const index of order) if (strong?.has(index)) name(index);
  picture.headers.forEach((header, index) => {
    const y = yOf(scroll, header.y);
    const x = header.side === "client" ? left - barWidth - 3 : right + barWidth + 3;
    context.globalAlpha = strong ? 0.35 : 1;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, Math.max(-10, yOf(scroll, header.from) + 2));
    context.lineTo(x, Math.min(size.height + 10, yOf(scroll, header.to) - 2));
    context.stroke();
    if (visible(y) && reserve(taken[header.side], y, labelSpacing)) text(header.side, y, { text: headers[index] ?? "", number: "▾" }, 650, palette.muted, strong ? 0.45 : 1);
  });
  for (const index of order) if (!strong?.has(index)) name(index);
  context.globalAlpha = 1;
}

/** drawMark draws a sign in the middle of a bundle: a cross for what would be cut off, a plus for what would be let in. */
function drawMark(context: CanvasRenderingContext2D, { palette }: Scene, x: number, y: number, radius: number, mark: "cut" | "let") {
  context.fillStyle = palette.page;
  context.strokeStyle = mark === "cut" ? palette.bad : palette.ok;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
  const arm = radius * (mark === "cut" ? 0.42 : 0.55);
  context.lineCap = "round";
  context.beginPath();
  if (mark === "cut") {
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
  } else {
    context.moveTo(x - arm, y);
    context.lineTo(x + arm, y);
    context.moveTo(x, y - arm);
    context.lineTo(x, y + arm);
  }
  context.stroke();
}

function drawMarks(context: CanvasRenderingContext2D, scene: Scene) {
  const { picture, marks, scroll, size } = scene;
  const { left, right } = columnsOf(size.width);
  const first = new Map<number, Strand[]>();
  for (const strand of picture.strands) if (marks.has(strand.bundle)) first.set(strand.bundle, [...(first.get(strand.bundle) ?? []), strand]);
  for (const [index, mark] of marks) {
    const strands = first.get(index);
    if (!strands?.length) continue;
    const y = strands.reduce((sum, { y1, y2 }) => sum + (y1 + y2) / 2, 0) / strands.length;
    drawMark(context, scene, (left + right) / 2, yOf(scroll, y), marks.size > 40 ? 5 : 8, mark);
  }
}

/** trafficPainter returns the function that draws one canvas. All strands are kept on a layer, so that highlighting one does not draw the others again. */
export function trafficPainter() {
  const layer = document.createElement("canvas");
  const fit = nameFitter();
  let kept: Base | undefined;
  return (context: CanvasRenderingContext2D, scene: Scene) => {
    const { canvas } = context;
    const below = layer.getContext("2d");
    if (!below) return;
    if (layer.width !== canvas.width || layer.height !== canvas.height) [layer.width, layer.height, kept] = [canvas.width, canvas.height, undefined];
    if (!kept || !same(kept, scene)) {
      clear(below, scene.size);
      const { length } = scene.picture.strands;
      // Among thousands, those with few connections are the faintest.
      strokes(below, scene, () => true, (kind, width) => usualAlpha[kind] * opacityFactor(kind, scene.picture, scene.scroll) * (length > mostDetailed ? 0.4 + 0.6 * Math.min(1, width / 15) : 1));
    }
    kept = { picture: scene.picture, scroll: scene.scroll, size: scene.size, palette: scene.palette };
    const strong = touched(scene);
    clear(context, scene.size);
    context.globalAlpha = strong ? 0.16 : 1;
    context.drawImage(layer, 0, 0, scene.size.width, scene.size.height);
    context.globalAlpha = 1;
    if (strong) {
      const { active, near, marks, picture } = scene;
      const wanted = ({ bundle }: Strand) => {
        if (active !== undefined) return bundle === active;
        if (near !== undefined) return picture.bundles[bundle]?.from === near || picture.bundles[bundle]?.to === near;
        return marks.has(bundle);
      };
      strokes(context, scene, wanted, (kind) => (kind === "granted" ? 0.9 : 0.95), active === undefined ? 0.4 : 0.8);
    }
    if (scene.marks.size > 0) drawMarks(context, scene);
    drawNodes(context, scene, strong, fit);
  };
}

/** unitAt returns the unit of height at a height of the window. */
export const unitAt = ({ top, k }: TrafficScroll, y: number): number => top + (y - padding) / k;

/** placeAt returns the node whose name or bar is at a point of the window. */
export function placeAt(picture: TrafficPicture, scroll: TrafficScroll, size: Size, x: number, y: number): number | undefined {
  const { left, right } = columnsOf(size.width);
  const side = x <= left + 4 ? "client" : x >= right - 4 ? "server" : undefined;
  if (side === undefined) return undefined;
  let best: number | undefined;
  let distance = 12;
  picture.nodes.forEach((node, index) => {
    if (node.side !== side) return;
    const away = Math.max(0, Math.abs(yOf(scroll, node.y) - y) - (node.height * scroll.k) / 2);
    if (away < distance || (away === 0 && Math.abs(yOf(scroll, node.y) - y) < 4)) [distance, best] = [away, index];
  });
  return best;
}

/** headerAt returns the header of an unfolded group at a point of the window. */
export function headerAt(picture: TrafficPicture, scroll: TrafficScroll, size: Size, x: number, y: number): TrafficHeader | undefined {
  const { left, right } = columnsOf(size.width);
  const side = x < left ? "client" : x > right ? "server" : undefined;
  return picture.headers.find((header) => header.side === side && Math.abs(yOf(scroll, header.y) - y) < Math.max(5, Math.min(10, 10 * scroll.k)));
}

/** middleOf returns the middle of a bundle in the window. */
export function middleOf(picture: TrafficPicture, scroll: TrafficScroll, size: Size, bundle: number): { x: number; y: number } {
  const strands = picture.strands.filter((strand) => strand.bundle === bundle);
  const y = strands.reduce((sum, { y1, y2 }) => sum + (y1 + y2) / 2, 0) / Math.max(1, strands.length);
  return { x: size.width / 2, y: yOf(scroll, y) };
}
