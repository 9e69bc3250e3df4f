/** Draws the picture. Ten thousand lines take a canvas some tens of milliseconds, and a document seconds. */
import { rowHeight } from "../../lib/access-graph";
import type { Picture, PictureNode, View } from "../../lib/access-graph";

/** Between the two columns, and what is left for the names beside them; in the picture's own units. */
export const gap = 420;
export const margin = 230;
const radius = 5;
/** Smaller names cannot be read, so only those that are looked at are written. */
const readable = 8;
const many = 400;

export interface Colors {
  text: string;
  muted: string;
  page: string;
  allow: string;
  deny: string;
  idle: string;
  accent: string;
  /** The family of the words around it. */
  font: string;
}

export const xOf = (node: Pick<PictureNode, "side">) => (node.side === "client" ? 0 : gap);

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
  /** Place of what is looked at; its lines come to the fore. */
  active: number | undefined;
}

export function draw(context: CanvasRenderingContext2D, { picture, view, size, colors, titles, active }: Scene) {
  const ratio = globalThis.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  const top = (-view.y - 40) / view.k;
  const bottom = (size.height - view.y + 40) / view.k;
  const near = new Set<number>();
  const line = (from: PictureNode, to: PictureNode) => {
    const [x1, y1, x2, y2] = [view.x + xOf(from) * view.k, view.y + from.y * view.k, view.x + xOf(to) * view.k, view.y + to.y * view.k];
    const middle = (x1 + x2) / 2;
    context.moveTo(x1, y1);
    context.bezierCurveTo(middle, y1, middle, y2, x2, y2);
  };
  /** Lines of one look are one path: setting the pen for each would take longer than drawing. */
  const lines = (color: string, alpha: number, width: number, wanted: (link: Picture["links"][number]) => boolean) => {
    context.strokeStyle = color;
    context.globalAlpha = alpha;
    context.lineWidth = width;
    context.beginPath();
    for (const link of picture.links) {
      if (!wanted(link)) continue;
      const [from, to] = [picture.nodes[link.from], picture.nodes[link.to]];
      if (!from || !to || (from.y < top && to.y < top) || (from.y > bottom && to.y > bottom)) continue;
      line(from, to);
    }
    context.stroke();
  };
  const faint = picture.links.length > many ? 0.16 : 0.45;
  const rest = active === undefined ? faint : faint / 4;
  const aside = (link: Picture["links"][number]) => active === undefined || (link.from !== active && link.to !== active);
  lines(colors.idle, rest, 1, (link) => aside(link) && !link.counting);
  lines(colors.allow, rest, 1, (link) => aside(link) && link.counting && !link.deny);
  lines(colors.deny, Math.max(rest, 0.3), 1.2, (link) => aside(link) && link.deny);
  if (active !== undefined) {
    for (const { from, to } of picture.links) {
      if (from === active) near.add(to);
      else if (to === active) near.add(from);
    }
    lines(colors.idle, 0.9, 1.4, (link) => !aside(link) && !link.counting);
    lines(colors.allow, 0.9, 1.8, (link) => !aside(link) && link.counting && !link.deny);
    lines(colors.deny, 0.95, 1.8, (link) => !aside(link) && link.deny);
  }
  const pixels = Math.min(13, rowHeight * 0.58 * view.k);
  const spread = (picture.height / Math.max(1, Math.max(picture.clients, picture.servers))) * view.k;
  context.textBaseline = "middle";
  picture.nodes.forEach((node, index) => {
    if (node.y < top || node.y > bottom) return;
    const strong = index === active || near.has(index);
    const [x, y] = [view.x + xOf(node) * view.k, view.y + node.y * view.k];
    context.globalAlpha = active === undefined || strong ? 1 : 0.35;
    context.fillStyle = index === active ? colors.accent : node.mode === "Enforce" ? colors.allow : colors.muted;
    context.beginPath();
    context.arc(x, y, Math.max(1.5, Math.min(radius, radius * view.k)) + (index === active ? 2 : 0), 0, 2 * Math.PI);
    context.fill();
    if ((pixels < readable || spread < 10) && !strong) return;
    context.font = `${strong ? 600 : 400} ${Math.max(strong ? 11 : readable, pixels)}px ${colors.font}`;
    context.textAlign = node.side === "client" ? "right" : "left";
    context.fillStyle = colors.text;
    context.fillText(titles[index] ?? "", x + (node.side === "client" ? -10 : 10), y, Math.max(40, margin * Math.max(view.k, 0.6)));
  });
  context.globalAlpha = 1;
}

/** The node at a point of the screen, its name included; undefined: none is near. */
export function nodeAt(picture: Picture, view: View, px: number, py: number): number | undefined {
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

/** All of it, or as much as can be read of its width. */
export function fitted(picture: Picture, size: { width: number; height: number }, whole: boolean): View {
  const wide = size.width / (gap + 2 * margin);
  const k = Math.max(0.02, whole ? Math.min(wide, (size.height - 20) / picture.height) : Math.min(1.2, wide));
  const tall = picture.height * k;
  return { k, x: (size.width - gap * k) / 2, y: tall < size.height ? (size.height - tall) / 2 : 10 };
}
