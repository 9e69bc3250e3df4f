/** Draws the access graph on a canvas: 10,000 lines take tens of milliseconds there, and seconds as DOM elements. */
import { rowHeight } from "../../lib/access-graph";
import type { Picture, PictureNode, View } from "../../lib/access-graph";

/** wide is the distance between the two columns, and the space for the names beside them, in the picture's own units. */
const wide = { gap: 420, margin: 230 };
/** narrow is the same for narrow screens, where the columns are closer together, so that names stay readable. */
const narrow = { gap: 90, margin: 125 };
const shapeOf = (width: number) => (width < 560 ? narrow : wide);
const radius = 5;
/** readable is the size of names in pixels below which only those of selected nodes are drawn. */
const readable = 8;
const many = 400;

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
function stroke(context: CanvasRenderingContext2D, { picture, view, size }: Lines, color: string, alpha: number, width: number, wanted: (link: Link) => boolean) {
  const { gap } = shapeOf(size.width);
  const { top, bottom } = seen(view, size);
  const [left, right] = [view.x, view.x + gap * view.k];
  const middle = (left + right) / 2;
  context.strokeStyle = color;
  context.globalAlpha = alpha;
  context.lineWidth = width;
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
}

const seen = (view: View, size: Scene["size"]) => ({ top: (-view.y - 40) / view.k, bottom: (size.height - view.y + 40) / view.k });

function clean(context: CanvasRenderingContext2D, size: Scene["size"]) {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
}

/** drawLines draws all lines without a selection. */
function drawLines(context: CanvasRenderingContext2D, lines: Lines) {
  const { picture, size, colors } = lines;
  const faint = picture.links.length > many ? 0.16 : 0.45;
  clean(context, size);
  stroke(context, lines, colors.idle, faint, 1, (link) => !link.counting);
  stroke(context, lines, colors.allow, faint, 1, (link) => link.counting && !link.deny);
  stroke(context, lines, colors.deny, Math.max(faint, 0.3), 1.2, (link) => link.deny);
}

const alike = (a: Lines, b: Lines) => a.picture === b.picture && a.view.k === b.view.k && a.view.x === b.view.x && a.view.y === b.view.y && a.size.width === b.size.width && a.size.height === b.size.height && JSON.stringify(a.colors) === JSON.stringify(b.colors);

/** painter returns the function that draws one canvas. The lines are cached, so that selecting a node does not draw all of them again. */
export function painter() {
  const layer = document.createElement("canvas");
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
    drawNodes(context, scene);
  };
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene) {
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
    stroke(context, scene, colors.idle, 0.9, 1.4, (link) => about(link) && !link.counting);
    stroke(context, scene, colors.allow, 0.9, 1.8, (link) => about(link) && link.counting && !link.deny);
    stroke(context, scene, colors.deny, 0.95, 1.8, (link) => about(link) && link.deny);
  }
  const pixels = Math.min(13, rowHeight * 0.58 * view.k);
  const spread = (picture.height / Math.max(1, Math.max(picture.clients, picture.servers))) * view.k;
  context.textBaseline = "middle";
  picture.nodes.forEach((node, index) => {
    if (node.y < top || node.y > bottom) return;
    const strong = index === active || near.has(index);
    const [x, y] = [view.x + xOf(node, gap) * view.k, view.y + node.y * view.k];
    context.globalAlpha = active === undefined || strong ? 1 : 0.35;
    context.fillStyle = index === active ? colors.accent : node.mode === "Enforce" ? colors.allow : colors.muted;
    context.beginPath();
    context.arc(x, y, Math.max(1.5, Math.min(radius, radius * view.k)) + (index === active ? 2 : 0), 0, 2 * Math.PI);
    context.fill();
    if ((pixels < readable || spread < 10) && !strong) return;
    context.font = `${strong ? 600 : 400} ${Math.max(strong ? 11 : readable, pixels)}px ${colors.font}`;
    context.textAlign = node.side === "client" ? "right" : "left";
    context.fillStyle = colors.text;
    context.fillText(titles[index] ?? "", x + (node.side === "client" ? -10 : 10), y, Math.max(40, margin * Math.max(view.k, 0.6) - 14));
  });
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

/** fitted returns the view that shows the whole graph, or as much of its width as stays readable. */
export function fitted(picture: Picture, size: { width: number; height: number }, whole: boolean): View {
  const { gap, margin } = shapeOf(size.width);
  const across = size.width / (gap + 2 * margin);
  const k = Math.max(0.02, whole ? Math.min(across, (size.height - 20) / picture.height) : Math.min(1.2, across));
  const tall = picture.height * k;
  return { k, x: (size.width - gap * k) / 2, y: tall < size.height ? (size.height - tall) / 2 : 10 };
}
