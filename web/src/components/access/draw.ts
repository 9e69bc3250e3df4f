/** Draws the access graph on a canvas: 10,000 lines take tens of milliseconds there, and seconds as DOM elements. */
import { rowHeight } from "../../lib/access-graph";
import { nameFitter, reserve } from "../../lib/labels";
import type { NameFitter } from "../../lib/labels";
import { formOf, openMiddle } from "../traffic/forms";
import type { Form } from "../traffic/forms";
import type { Picture, PictureNode, View } from "../../lib/access-graph";

/** wide is the distance between the two columns, and the space for the names beside them, in the picture's own units. */
const wide = { gap: 420, margin: 230 };
/** narrow is the same for narrow screens, where the columns are closer together, so that names stay readable. */
const narrow = { gap: 90, margin: 125 };
/** largestFit is the largest zoom factor with which a graph is shown at first: a small one is not enlarged further. */
const largestFit = 1.25;
/** shapeOf returns the distances for a width in pixels. On a screen that is wider than needed at the largest fit, the columns are further apart. */
const shapeOf = (width: number) => (width < 560 ? narrow : { ...wide, gap: Math.max(wide.gap, width / largestFit - 2 * wide.margin) });
const radius = 5;
/** ring is the width in pixels of the outline of a resource that does not refuse. */
const ring = 1.5;
/** readable is the size of names in pixels below which only those of selected nodes are drawn. */
const readable = 8;
/** many is the number of lines above which they are thin, faint and without dashes and openings. */
const many = 400;
/** tallest is the height in pixels up to which the whole graph is shown at first. */
const tallest = 900;
/** padding is the space above and below the graph in pixels. */
const padding = 14;

/** Colors are the colors and the font with which the graph is drawn. */
export interface Colors {
  text: string;
  muted: string;
  page: string;
  allow: string;
  deny: string;
  idle: string;
  accent: string;
  /** The font family of the page. */
  font: string;
}

const xOf = (node: Pick<PictureNode, "side">, gap: number) => (node.side === "client" ? 0 : gap);

/** colorsOf reads the colors and the font from the styles of an element. */
export function colorsOf(element: Element): Colors {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim() || "#888";
  return { text: of("--acp-text"), muted: of("--acp-muted"), page: of("--acp-raised"), allow: of("--acp-ok-solid"), deny: of("--acp-bad-solid"), idle: of("--acp-idle-solid"), accent: of("--acp-busy-solid"), font: style.fontFamily || "system-ui" };
}

interface Scene {
  picture: Picture;
  view: View;
  size: { width: number; height: number };
  colors: Colors;
  titles: string[];
  /** Index of the selected node; its lines are drawn on top. */
  active: number | undefined;
}

type Link = Picture["links"][number];
type Lines = Omit<Scene, "titles" | "active">;

/** stroke draws lines of the same style as one path, because changing the style for each line takes longer than drawing it. */
function stroke(context: CanvasRenderingContext2D, { picture, view, size }: Lines, color: string, alpha: number, width: number, wanted: (link: Link) => boolean, form?: Form) {
  const { gap } = shapeOf(size.width);
  const { top, bottom } = seen(view, size);
  const [left, right] = [view.x, view.x + gap * view.k];
  const middle = (left + right) / 2;
  context.strokeStyle = color;
  context.globalAlpha = alpha;
  context.lineWidth = width;
  context.setLineDash(form?.dash ?? []);
  context.beginPath();
  for (const link of picture.links) {
    if (!wanted(link)) continue;
    const [from, to] = [picture.nodes[link.from], picture.nodes[link.to]];
    if (!from || !to || (from.y < top && to.y < top) || (from.y > bottom && to.y > bottom)) continue;
    const [y1, y2] = [view.y + from.y * view.k, view.y + to.y * view.k];
    context.moveTo(left, y1);
    context.bezierCurveTo(middle, y1, middle, y2, right, y2);
  }
  context.stroke();
  context.setLineDash([]);
  if (form) openMiddle(context, form);
}

/** hollow is the width in pixels of a line without effect, and denied that of a denied one, whose forms are those of the traffic map. */
const [hollow, denied] = [4, 2.5];

const seen = (view: View, size: Scene["size"]) => ({ top: (-view.y - 40) / view.k, bottom: (size.height - view.y + 40) / view.k });

function clean(context: CanvasRenderingContext2D, size: Scene["size"]) {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
}

/** drawLines draws all lines without a selection. */
function drawLines(context: CanvasRenderingContext2D, lines: Lines) {
  const { picture, size, colors } = lines;
  clean(context, size);
  if (picture.links.length > many) {
    stroke(context, lines, colors.idle, 0.16, 1, (link) => !link.counting);
    stroke(context, lines, colors.allow, 0.16, 1, (link) => link.counting && !link.deny);
    stroke(context, lines, colors.deny, 0.3, 1.2, (link) => link.deny);
    return;
  }
  stroke(context, lines, colors.allow, 0.6, 2, (link) => link.counting && !link.deny);
  stroke(context, lines, colors.idle, 0.9, hollow, (link) => !link.counting && !link.deny, formOf("unmanaged", hollow));
  stroke(context, lines, colors.deny, 0.9, denied, (link) => link.deny, formOf("refused", denied));
}

const alike = (a: Lines, b: Lines) => a.picture === b.picture && a.view.k === b.view.k && a.view.x === b.view.x && a.view.y === b.view.y && a.size.width === b.size.width && a.size.height === b.size.height && JSON.stringify(a.colors) === JSON.stringify(b.colors);

/** painter returns the function that draws one canvas. The lines are cached, so that selecting a node does not draw all of them again. */
export function painter() {
  const layer = document.createElement("canvas");
  const fit = nameFitter();
  let kept: Lines | undefined;
  return (context: CanvasRenderingContext2D, scene: Scene) => {
    const { canvas } = context;
    const below = layer.getContext("2d");
    if (!below) return;
    if (layer.width !== canvas.width || layer.height !== canvas.height) {
      [layer.width, layer.height, kept] = [canvas.width, canvas.height, undefined];
    }
    if (!kept || !alike(kept, scene)) drawLines(below, scene);
    kept = scene;
    clean(context, scene.size);
    context.globalAlpha = scene.active === undefined ? 1 : 0.25;
    context.drawImage(layer, 0, 0, scene.size.width, scene.size.height);
    drawNodes(context, scene, fit);
  };
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene, fit: NameFitter) {
  const { picture, view, size, colors, titles, active } = scene;
  const { gap, margin } = shapeOf(size.width);
  const { top, bottom } = seen(view, size);
  const near = new Set<number>();
  if (active !== undefined) {
    const about = (link: Link) => link.from === active || link.to === active;
    for (const { from, to } of picture.links) {
      if (from === active) near.add(to);
      else if (to === active) near.add(from);
    }
    stroke(context, scene, colors.allow, 0.9, 2, (link) => about(link) && link.counting && !link.deny);
    stroke(context, scene, colors.idle, 0.9, hollow, (link) => about(link) && !link.counting && !link.deny, formOf("unmanaged", hollow));
    stroke(context, scene, colors.deny, 0.95, denied, (link) => about(link) && link.deny, formOf("refused", denied));
  }
  const pixels = Math.min(13, rowHeight * 0.58 * view.k);
  const spread = (picture.height / Math.max(1, Math.max(picture.clients, picture.servers))) * view.k;
  const readableNames = pixels >= readable && spread >= 10;
  const taken = { client: [] as number[], server: [] as number[] };
  context.textBaseline = "middle";
  const isStrong = (index: number) => index === active || near.has(index);
  const mark = (node: PictureNode, index: number) => {
    if (node.y < top || node.y > bottom) return;
    const strong = isStrong(index);
    const [x, y] = [view.x + xOf(node, gap) * view.k, view.y + node.y * view.k];
    context.globalAlpha = active === undefined || strong ? 1 : 0.35;
    // A resource that refuses is full, and one that only observes is a ring, so that they differ without colours, too.
    const open = node.mode !== undefined && node.mode !== "Enforce";
    const color = index === active ? colors.accent : node.mode === "Enforce" ? colors.allow : colors.muted;
    context.fillStyle = open ? colors.page : color;
    context.beginPath();
    context.arc(x, y, Math.max(1.5, Math.min(radius, radius * view.k)) + (index === active ? 2 : 0) - (open ? ring / 2 : 0), 0, 2 * Math.PI);
    context.fill();
    if (open) {
      context.strokeStyle = color;
      context.lineWidth = ring;
      context.stroke();
    }
    const font = Math.max(strong ? 11 : readable, pixels);
    if ((!readableNames && !strong) || !reserve(taken[node.side], y, Math.min(font + 1, Math.max(10, spread - 0.01)))) return;
    context.font = `${strong ? 600 : 400} ${font}px ${colors.font}`;
    context.textAlign = node.side === "client" ? "right" : "left";
    context.fillStyle = colors.text;
    context.fillText(fit(context, titles[index] ?? "", Math.max(40, margin * Math.max(view.k, 0.6) - 14)), x + (node.side === "client" ? -10 : 10), y);
  };
  // The selected node and its neighbours have the first claim on the space for names.
  if (active !== undefined) {
    const selected = picture.nodes[active];
    if (selected) mark(selected, active);
    picture.nodes.forEach((node, index) => index !== active && near.has(index) && mark(node, index));
  }
  picture.nodes.forEach((node, index) => !isStrong(index) && mark(node, index));
  context.globalAlpha = 1;
}

/** nodeAt returns the index of the node, or of its name, at a point of the screen, and undefined if none is near. */
export function nodeAt(picture: Picture, view: View, width: number, px: number, py: number): number | undefined {
  const { gap } = shapeOf(width);
  const [x, y] = [(px - view.x) / view.k, (py - view.y) / view.k];
  const side = x < gap / 2 ? "client" : "server";
  if (x > 14 / view.k && x < gap - 14 / view.k) return undefined;
  let best: number | undefined;
  let distance = Math.max(rowHeight, 12 / view.k);
  picture.nodes.forEach((node, index) => {
    const away = Math.abs(node.y - y);
    if (node.side === side && away < distance) {
      distance = away;
      best = index;
    }
  });
  return best;
}

/** acrossOf returns the zoom factor with which the columns and their names fill a width, or less if that were too large. */
function acrossOf(width: number): number {
  const { gap, margin } = shapeOf(width);
  return Math.min(largestFit, width / (gap + 2 * margin));
}

/** heightOf returns the height in pixels of the drawing: that of the whole graph, or for a larger one less than that of the window, in which it is moved and zoomed. */
export function heightOf(picture: Pick<Picture, "height">, width: number, windowHeight: number): number {
  const natural = Math.ceil(picture.height * acrossOf(width)) + 2 * padding;
  return natural <= tallest ? Math.max(120, natural) : Math.round(Math.min(windowHeight * 0.6, 560));
}

/** fitted returns the view that shows the whole graph, or as much of its width as stays readable. */
export function fitted(picture: Pick<Picture, "height">, size: { width: number; height: number }, whole: boolean): View {
  const { gap } = shapeOf(size.width);
  const across = acrossOf(size.width);
  const k = Math.max(0.02, whole ? Math.min(across, (size.height - 2 * padding) / picture.height) : across);
  const tall = picture.height * k;
  return { k, x: (size.width - gap * k) / 2, y: tall < size.height ? (size.height - tall) / 2 : 10 };
}
