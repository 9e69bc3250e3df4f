/**
 * The picture of who reaches what: clients on the left, servers on the right, at one of three zoom levels. Pure, and
 * the same for the same answer, so that nothing moves when it is read again.
 */
import type { AccessGraph, AccessNode, Mode } from "../api/types";

/** levels contains the zoom levels of the access map, from the coarsest. */
export const levels = ["team", "application", "resource"] as const;
/** Level is a zoom level of the access map. */
export type Level = (typeof levels)[number];

/** Focus is the filter that selecting a node of the access map sets. It is undefined if no filter describes the node. */
export type Focus = { subject: string } | { resource: string } | { team: string } | undefined;

/** PictureNode is a node of the picture: a client, a server, or a group of them. */
export interface PictureNode {
  key: string;
  side: "client" | "server";
  /** `resource`, `application`, `team`, or one of the groups of names without an owner. */
  kind: AccessNode["kind"] | "team" | "none";
  /** Empty for the groups, which have words of their own. */
  title: string;
  name: string;
  /** names is the number of names that the node contains. */
  names: number;
  mode: Mode | undefined;
  focus: Focus;
  y: number;
}

/** PictureLink is a line of the picture: all statements between two nodes. */
export interface PictureLink {
  from: number;
  to: number;
  statements: number;
  deny: boolean;
  allow: boolean;
  counting: boolean;
  broad: boolean;
}

/** Picture is the access graph at one zoom level with the positions of its nodes. */
export interface Picture {
  nodes: PictureNode[];
  links: PictureLink[];
  clients: number;
  servers: number;
  height: number;
}

/** rowHeight is the vertical distance of the nodes in pixels at zoom factor 1. */
export const rowHeight = 22;

/** teamOf returns the team of a node. If the node has several owners, it is the team of the first one. */
function teamOf(graph: AccessGraph, node: AccessNode) {
  const at = node.teams?.[0];
  return at === undefined ? undefined : graph.teams[at];
}

type Grouped = Omit<PictureNode, "names" | "y">;

function grouped(graph: AccessGraph, node: AccessNode, side: PictureNode["side"], byTeam: boolean): Grouped {
  if (!byTeam) {
    const focus = side === "client" ? { subject: node.name } : { resource: node.name };
    return { key: `${side} ${node.name}`, side, kind: node.kind, title: node.title, name: node.name, mode: node.mode, focus };
  }
  const team = teamOf(graph, node);
  if (team) return { key: `${side} team ${team.kind}:${team.id}`, side, kind: "team", title: team.displayName, name: `${team.kind}:${team.id}`, mode: undefined, focus: { team: `${team.kind}:${team.id}` } };
  const kind = node.kind === "anyone" || node.kind === "cidr" || node.kind === "wildcard" ? node.kind : "none";
  return { key: `${side} group ${kind}`, side, kind, title: "", name: "", mode: undefined, focus: kind === "anyone" ? { subject: node.name } : undefined };
}

interface Side {
  nodes: PictureNode[];
  /** Place in `nodes` by place in the answer. */
  places: Map<number, number>;
}

function sideOf(graph: AccessGraph, ends: Iterable<number>, side: PictureNode["side"], byTeam: boolean): Side {
  const nodes: PictureNode[] = [];
  const byKey = new Map<string, number>();
  const places = new Map<number, number>();
  for (const end of ends) {
    const node = graph.nodes[end];
    if (!node || places.has(end)) continue;
    const group = grouped(graph, node, side, byTeam);
    let at = byKey.get(group.key);
    if (at === undefined) {
      at = nodes.length;
      byKey.set(group.key, at);
      nodes.push({ ...group, names: 0, y: 0 });
    }
    const own = nodes[at];
    if (own) own.names += 1;
    places.set(end, at);
  }
  return { nodes, places };
}

/** order returns the indices of the nodes sorted by their weights. A weight such as the middle of the connected nodes makes fewer lines cross. */
function order(nodes: PictureNode[], weights: (index: number) => number): number[] {
  return nodes
    .map((node, index) => ({ index, at: weights(index), title: node.title || node.kind }))
    .sort((a, b) => a.at - b.at || a.title.localeCompare(b.title, undefined, { numeric: true }) || a.index - b.index)
    .map(({ index }) => index);
}

function place(nodes: PictureNode[], sequence: number[], height: number) {
  sequence.forEach((index, row) => {
    const node = nodes[index];
    if (node) node.y = ((row + 0.5) * height) / sequence.length;
  });
}

/** pictureOf returns the picture of the graph at a zoom level. */
export function pictureOf(graph: AccessGraph, level: Level): Picture {
  const clients = sideOf(graph, graph.links.map(({ from }) => from), "client", level === "team");
  const servers = sideOf(graph, graph.links.map(({ to }) => to), "server", level !== "resource");
  const merged = new Map<number, PictureLink>();
  for (const link of graph.links) {
    const from = clients.places.get(link.from);
    const to = servers.places.get(link.to);
    if (from === undefined || to === undefined) continue;
    const key = from * servers.nodes.length + to;
    const own = merged.get(key) ?? { from, to: to + clients.nodes.length, statements: 0, deny: false, allow: false, counting: false, broad: false };
    own.statements += link.statements;
    own.deny ||= link.deny === true;
    own.allow ||= link.allow === true;
    own.counting ||= link.counting === true;
    own.broad ||= link.wildcard === true;
    merged.set(key, own);
  }
  const links = [...merged.values()];
  const height = Math.max(clients.nodes.length, servers.nodes.length, 1) * rowHeight;
  place(clients.nodes, order(clients.nodes, () => 0), height);
  const [sums, counts] = [new Float64Array(servers.nodes.length), new Float64Array(servers.nodes.length)];
  for (const { from, to } of links) {
    const at = to - clients.nodes.length;
    sums[at] = (sums[at] ?? 0) + (clients.nodes[from]?.y ?? 0);
    counts[at] = (counts[at] ?? 0) + 1;
  }
  place(servers.nodes, order(servers.nodes, (index) => (sums[index] ?? 0) / Math.max(1, counts[index] ?? 1)), height);
  return { nodes: [...clients.nodes, ...servers.nodes], links, clients: clients.nodes.length, servers: servers.nodes.length, height };
}

/** levelBelow returns the zoom level that shows the members of a node separately. */
export function levelBelow(level: Level, node: Pick<PictureNode, "kind">): Level {
  if (node.kind !== "team") return level;
  return level === "team" ? "application" : "resource";
}

/** View is the visible part of the picture: the offset in pixels and the zoom factor. */
export interface View {
  x: number;
  y: number;
  k: number;
}

const smallest = 0.02;
const largest = 3;

/** zoomed returns the view with another zoom factor, so that the point on the screen stays where it is. */
export function zoomed({ x, y, k }: View, by: number, px: number, py: number): View {
  const next = Math.min(largest, Math.max(smallest, k * by));
  return { k: next, x: px - ((px - x) * next) / k, y: py - ((py - y) * next) / k };
}
