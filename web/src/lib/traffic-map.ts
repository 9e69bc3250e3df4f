/**
 * The picture of the traffic map: clients on the left, resources on the right, and between them one strand for each kind of traffic, whose width grows
 * with the number of connections. Pure, and the same for the same answer, so that nothing moves when it is read again.
 */
import type { Impact, TrafficLink, TrafficMap, TrafficNode } from "../api/types";
import { levels } from "./access-graph";
import type { Level } from "./access-graph";

/** trafficKinds contains the kinds of strands in the order in which they are drawn; later ones lie on top. */
export const trafficKinds = ["granted", "allowed", "unmanaged", "audited", "refused"] as const;
/** TrafficKind is the kind of traffic of a strand: a grant that was not used, or connections by decision. */
export type TrafficKind = (typeof trafficKinds)[number];
/** SeenKind is a kind of connections that were seen. */
export type SeenKind = Exclude<TrafficKind, "granted">;
/** seenKinds contains the kinds of connections in the order in which people read them. */
export const seenKinds: readonly SeenKind[] = ["allowed", "audited", "refused", "unmanaged"];

/** Side is the side of a node. */
export type Side = "client" | "server";
/** GroupKind is the kind of a group of names that has no owner. */
export type GroupKind = "anyone" | "cidr" | "wildcard" | "unnamed" | "none";

/** TrafficPlace is a node of the picture: a name, or a group of names with one owner. */
export interface TrafficPlace {
  /** Stable for the same name or group; it is used in the URL. */
  key: string;
  side: Side;
  /** Empty for groups without an owner, whose texts depend on the language. */
  title: string;
  /** The name of a single node; empty for groups and for ends without a name. */
  name: string;
  id: string | undefined;
  group: string;
  groupKind: GroupKind | "team";
  single: boolean;
  /** The number of names in it. */
  names: number;
  /** The number of connections. */
  volume: number;
  /** The middle and the height in units of the picture. */
  y: number;
  height: number;
}

/** TrafficHeader is the name of a group whose members are shown separately. */
export interface TrafficHeader {
  side: Side;
  group: string;
  groupKind: GroupKind | "team";
  title: string;
  y: number;
  /** The vertical extent of its members, from the upper to the lower end. */
  from: number;
  to: number;
}

/** Bundle is all connections and grants between two nodes. */
export interface Bundle {
  from: number;
  to: number;
  /** The places of its links in the answer. */
  links: number[];
  /** Connections by kind; a kind is absent if it was not seen. */
  counts: Partial<Record<SeenKind, number>>;
  granted: number;
  unused: number;
  lastSeen: string | undefined;
}

/** Strand is one line of a bundle. */
export interface Strand {
  bundle: number;
  kind: TrafficKind;
  width: number;
  y1: number;
  y2: number;
}

/** TrafficPicture is the traffic map at one level with the positions of its nodes. */
export interface TrafficPicture {
  nodes: TrafficPlace[];
  headers: TrafficHeader[];
  bundles: Bundle[];
  strands: Strand[];
  clients: number;
  servers: number;
  height: number;
}

/** TrafficView selects what is drawn. */
export interface TrafficView {
  level: Level;
  /** Groups that are unfolded although the level folds them, or the reverse, as `c:GROUP` and `s:GROUP`. */
  toggled: ReadonlySet<string>;
  hidden: ReadonlySet<TrafficKind>;
  /** Only links with an end of this group. */
  team: string | undefined;
}

const add = (a: number | undefined, b: number | undefined): number | undefined => (a === undefined ? b : a + (b ?? 0));

/** countsOf returns the connections of a link by kind. */
export function countsOf(link: TrafficLink): Bundle["counts"] {
  const out: Bundle["counts"] = {};
  const refused = add(link.denied, link.defaultDenied);
  if (link.allowed !== undefined) out.allowed = link.allowed;
  if (link.audited !== undefined) out.audited = link.audited;
  if (refused !== undefined) out.refused = refused;
  if (link.unmanaged !== undefined) out.unmanaged = link.unmanaged;
  return out;
}

/** isUnused reports whether a link is granted and no connection of the period was let in. */
export const isUnused = (link: TrafficLink): boolean => link.granted === true && link.lastUsed === undefined;

/** kindsOf returns the kinds of strands that a link has. */
function kindsOf(link: TrafficLink, counts = countsOf(link)): TrafficKind[] {
  const out: TrafficKind[] = seenKinds.filter((kind) => counts[kind] !== undefined);
  return isUnused(link) ? [...out, "granted"] : out;
}

/** totals returns the number of links with each kind. */
export function totals(map: Pick<TrafficMap, "links">): Record<TrafficKind, number> {
  const out: Record<TrafficKind, number> = { granted: 0, allowed: 0, unmanaged: 0, audited: 0, refused: 0 };
  for (const link of map.links) for (const kind of kindsOf(link)) out[kind] += 1;
  return out;
}

/** widthOf returns the width of a strand: connections that are still open are as thin as one, and each tenfold number is wider by the same amount. */
export function widthOf(kind: TrafficKind, count: number): number {
  return kind === "granted" ? 1 : 3 + 1.9 * Math.log10(1 + count);
}

interface Group {
  key: string;
  kind: GroupKind | "team";
  title: string;
}

/** groupOf returns the group of a name: its owner, or one for the kind of names that have none. */
export function groupOf(map: Pick<TrafficMap, "teams">, node: Pick<TrafficNode, "team" | "kind">): Group {
  const team = node.team === undefined ? undefined : map.teams[node.team];
  if (team) return { key: `${team.kind}:${team.id}`, kind: "team", title: team.displayName };
  const kind = node.kind === "anyone" || node.kind === "cidr" || node.kind === "wildcard" || node.kind === "unnamed" ? node.kind : "none";
  return { key: `~${kind}`, kind, title: "" };
}

/** toggleKey returns how the URL names a group of a side. */
export const toggleKey = (side: Side, group: string): string => `${side === "client" ? "c" : "s"}:${group}`;

const unfoldedBy = (level: Level, side: Side): boolean => level === "resource" || (level === "application" && side === "client");

const rowLeast = 25;
const rowGap = 9;
const groupGap = 16;
const headerHeight = 22;
/** strandGap is the space between two strands of a node. */
const strandGap = 1.5;
/** slack is the space by which rows of the shorter side are at most moved apart. */
const slack = 46;

/** means returns for each node the mean rank of the nodes that it is connected with; without any, its own rank. */
function means(count: number, own: number[], ends: readonly (readonly [number, number])[], other: number[]): number[] {
  const [sums, counts] = [new Float64Array(count), new Float64Array(count)];
  for (const [here, there] of ends) {
    sums[here] = (sums[here] ?? 0) + (other[there] ?? 0);
    counts[here] = (counts[here] ?? 0) + 1;
  }
  return Array.from({ length: count }, (_, index) => ((counts[index] ?? 0) > 0 ? (sums[index] ?? 0) / (counts[index] ?? 1) : (own[index] ?? 0)));
}

// Comparing with a collator is many times faster than String.localeCompare with options.
const collator = new Intl.Collator(undefined, { numeric: true });

/** arranged returns the places of the nodes by weight; the members of a group stay together. */
function arranged(nodes: TrafficPlace[], weights: number[]): number[] {
  const groups = new Map<string, { sum: number; members: number[]; title: string }>();
  nodes.forEach((node, index) => {
    const group = groups.get(node.group) ?? { sum: 0, members: [], title: node.groupKind === "team" ? node.title : `~${node.group}` };
    group.sum += weights[index] ?? 0;
    group.members.push(index);
    groups.set(node.group, group);
  });
  const byTitle = (a: string, b: string) => collator.compare(a, b);
  return [...groups.entries()]
    .sort(([ka, a], [kb, b]) => a.sum / a.members.length - b.sum / b.members.length || byTitle(a.title, b.title) || (ka < kb ? -1 : 1))
    .flatMap(([, { members }]) => members.sort((a, b) => (weights[a] ?? 0) - (weights[b] ?? 0) || byTitle(nodes[a]?.title ?? "", nodes[b]?.title ?? "") || a - b));
}

const ranks = (sequence: number[]): number[] => {
  const out = new Array<number>(sequence.length).fill(0);
  sequence.forEach((index, rank) => {
    out[index] = rank / Math.max(1, sequence.length);
  });
  return out;
};

interface SideNodes {
  nodes: TrafficPlace[];
  byKey: Map<string, number>;
  seen: Set<string>;
  unfolded: Set<string>;
}

function placeIn(side: SideNodes, which: Side, map: TrafficMap, at: number, view: TrafficView): number {
  const node = map.nodes[at];
  if (!node) return -1;
  const group = groupOf(map, node);
  const single = unfoldedBy(view.level, which) !== view.toggled.has(toggleKey(which, group.key));
  const key = single ? node.name || `=${node.title}` : `~${group.key}`;
  let index = side.byKey.get(key);
  if (index === undefined) {
    index = side.nodes.length;
    side.byKey.set(key, index);
    side.nodes.push({ key, side: which, title: single ? node.title : group.title, name: single ? node.name : "", id: single ? node.id : undefined, group: group.key, groupKind: group.kind, single, names: 0, volume: 0, y: 0, height: 0 });
    if (single) side.unfolded.add(group.key);
  }
  const own = side.nodes[index];
  const name = node.name || `=${node.title}`;
  if (own && !side.seen.has(name)) {
    side.seen.add(name);
    own.names += 1;
  }
  return index;
}

const newSide = (): SideNodes => ({ nodes: [], byKey: new Map(), seen: new Set(), unfolded: new Set() });

/** stack sets the positions of a side's nodes and returns its headers and height. Without a height of the picture, rows are as close as they may be. */
function stack({ nodes, unfolded }: SideNodes, sequence: number[], height?: { is: number; natural: number }): { headers: TrafficHeader[]; height: number } {
  const headers: TrafficHeader[] = [];
  const spare = height ? height.is - height.natural : 0;
  const more = Math.min(slack, spare / Math.max(1, sequence.length));
  let y = height ? (spare - more * sequence.length) / 2 : 0;
  let group: string | undefined;
  for (const index of sequence) {
    const node = nodes[index];
    if (!node) continue;
    if (node.group !== group) {
      if (group !== undefined && (unfolded.size > 0 || node.groupKind !== "team")) y += groupGap;
      group = node.group;
      // The group of everybody has one member with the same name.
      if (node.single && node.groupKind !== "anyone") {
        headers.push({ side: node.side, group, groupKind: node.groupKind, title: "", y: y + headerHeight / 2, from: y + headerHeight, to: y });
        y += headerHeight;
      }
    }
    const row = Math.max(rowLeast, node.height + rowGap) + more;
    node.y = y + row / 2;
    y += row;
    const header = headers.at(-1);
    if (header && header.group === group) header.to = y;
  }
  return { headers, height: Math.max(y, rowLeast) };
}

/** trafficPicture returns the picture of the traffic map. */
export function trafficPicture(map: TrafficMap, view: TrafficView): TrafficPicture {
  const [clients, servers] = [newSide(), newSide()];
  const bundles: Bundle[] = [];
  const byEnds = new Map<number, number>();
  const groups = map.nodes.map((node) => groupOf(map, node));
  map.links.forEach((link, at) => {
    if (view.team !== undefined && groups[link.from]?.key !== view.team && groups[link.to]?.key !== view.team) return;
    const counts = countsOf(link);
    if (!kindsOf(link, counts).some((kind) => !view.hidden.has(kind))) return;
    const from = placeIn(clients, "client", map, link.from, view);
    const to = placeIn(servers, "server", map, link.to, view);
    if (from < 0 || to < 0) return;
    const ends = from * map.nodes.length + to;
    let index = byEnds.get(ends);
    if (index === undefined) {
      index = bundles.length;
      byEnds.set(ends, index);
      bundles.push({ from, to, links: [], counts: {}, granted: 0, unused: 0, lastSeen: undefined });
    }
    const bundle = bundles[index];
    if (!bundle) return;
    bundle.links.push(at);
    for (const kind of seenKinds) if (counts[kind] !== undefined) bundle.counts[kind] = (bundle.counts[kind] ?? 0) + counts[kind];
    if (link.granted) bundle.granted += 1;
    if (isUnused(link)) bundle.unused += 1;
    if (link.lastSeen !== undefined && (bundle.lastSeen === undefined || link.lastSeen > bundle.lastSeen)) bundle.lastSeen = link.lastSeen;
  });
  const strands: Strand[] = [];
  const heights = { client: new Float64Array(clients.nodes.length), server: new Float64Array(servers.nodes.length) };
  bundles.forEach((bundle, index) => {
    const total = seenKinds.reduce((sum, kind) => sum + (bundle.counts[kind] ?? 0), 0);
    const [from, to] = [clients.nodes[bundle.from], servers.nodes[bundle.to]];
    if (from) from.volume += total;
    if (to) to.volume += total;
    for (const kind of trafficKinds) {
      if (view.hidden.has(kind)) continue;
      const count = kind === "granted" ? (bundle.unused > 0 ? 0 : undefined) : bundle.counts[kind];
      if (count === undefined) continue;
      const width = widthOf(kind, count);
      strands.push({ bundle: index, kind, width, y1: 0, y2: 0 });
      heights.client[bundle.from] = (heights.client[bundle.from] ?? 0) + width + strandGap;
      heights.server[bundle.to] = (heights.server[bundle.to] ?? 0) + width + strandGap;
    }
  });
  for (const [side, { nodes }] of [["client", clients], ["server", servers]] as const) nodes.forEach((node, index) => (node.height = Math.max(8, heights[side][index] ?? 0)));

  const ends = bundles.map(({ from, to }) => [from, to] as const);
  const back = ends.map(([from, to]) => [to, from] as const);
  let left = arranged(clients.nodes, clients.nodes.map(() => 0));
  let right = arranged(servers.nodes, servers.nodes.map(() => 0));
  for (let pass = 0; pass < 4; pass++) {
    right = arranged(servers.nodes, means(servers.nodes.length, ranks(right), back, ranks(left)));
    if (pass < 3) left = arranged(clients.nodes, means(clients.nodes.length, ranks(left), ends, ranks(right)));
  }
  const natural = [stack(clients, left).height, stack(servers, right).height] as const;
  const height = Math.max(...natural);
  const headers = [...stack(clients, left, { is: height, natural: natural[0] }).headers, ...stack(servers, right, { is: height, natural: natural[1] }).headers];
  for (const header of headers) header.title = groups.length > 0 ? titleOf(map, header.group) : "";

  // On each node, strands are stacked in the order of their other ends, so that they cross less.
  const kindRank = (kind: TrafficKind) => trafficKinds.indexOf(kind);
  const otherOf = { client: (strand: Strand) => servers.nodes[bundles[strand.bundle]?.to ?? -1]?.y ?? 0, server: (strand: Strand) => clients.nodes[bundles[strand.bundle]?.from ?? -1]?.y ?? 0 };
  for (const [side, { nodes }] of [["client", clients], ["server", servers]] as const) {
    const at = nodes.map((node, index) => node.y - (heights[side][index] ?? 0) / 2);
    const sorted = [...strands].sort((a, b) => otherOf[side](a) - otherOf[side](b) || a.bundle - b.bundle || kindRank(a.kind) - kindRank(b.kind));
    for (const strand of sorted) {
      const bundle = bundles[strand.bundle];
      const index = side === "client" ? bundle?.from : bundle?.to;
      if (index === undefined) continue;
      const top = at[index] ?? 0;
      at[index] = top + strand.width + strandGap;
      strand[side === "client" ? "y1" : "y2"] = top + (strand.width + strandGap) / 2;
    }
  }
  for (const bundle of bundles) bundle.to += clients.nodes.length;
  return { nodes: [...clients.nodes, ...servers.nodes], headers, bundles, strands, clients: clients.nodes.length, servers: servers.nodes.length, height };
}

/** titleOf returns the name of a group's owner; empty for groups without one. */
function titleOf(map: Pick<TrafficMap, "teams">, group: string): string {
  return map.teams.find(({ kind, id }) => `${kind}:${id}` === group)?.displayName ?? "";
}

/** readingOrder returns the places of the bundles from top to bottom, in which the keyboard visits them. */
export function readingOrder({ bundles, nodes }: TrafficPicture): number[] {
  const yOf = (index: number) => nodes[index]?.y ?? 0;
  return bundles.map((_, index) => index).sort((a, b) => {
    const [x, y] = [bundles[a], bundles[b]];
    return x && y ? yOf(x.from) - yOf(y.from) || yOf(x.to) - yOf(y.to) : 0;
  });
}

/** TrafficScroll is the visible part of the picture: the unit at the top edge, and the pixels per unit. Only heights are scaled, so that names stay readable. */
export interface TrafficScroll {
  top: number;
  k: number;
}

/** padding is the space above and below the picture in pixels. */
export const padding = 22;

/** tallest is the height in pixels up to which a picture is drawn in its own size, so that all of its names can be read. */
const tallest = 1_600;

/** canvasHeight returns the height in pixels of the drawing: that of the picture, or for a larger one less than that of the window, in which it is moved and zoomed. */
export function canvasHeight(picture: Pick<TrafficPicture, "height">, windowHeight: number): number {
  const natural = Math.ceil(picture.height) + 2 * padding;
  return natural <= tallest ? Math.max(240, natural) : Math.round(Math.max(440, windowHeight * 0.74));
}

/** fittedScroll returns the view of the whole picture. */
export function fittedScroll(picture: Pick<TrafficPicture, "height">, height: number): TrafficScroll {
  const k = Math.min(1.5, (height - 2 * padding) / picture.height);
  return { k, top: (picture.height - (height - 2 * padding) / k) / 2 };
}

/** clampedScroll returns the view without empty space above or below a picture that is higher than the window. */
export function clampedScroll(picture: Pick<TrafficPicture, "height">, height: number, { top, k }: TrafficScroll): TrafficScroll {
  const fitted = fittedScroll(picture, height);
  const scale = Math.min(Math.max(k, Math.min(fitted.k, 1)), 3);
  const shown = (height - 2 * padding) / scale;
  return shown >= picture.height ? { k: scale, top: (picture.height - shown) / 2 } : { k: scale, top: Math.min(Math.max(top, 0), picture.height - shown) };
}

/** zoomedScroll returns the view with another scale, so that the point at this height of the window stays where it is. */
export function zoomedScroll(picture: Pick<TrafficPicture, "height">, height: number, scroll: TrafficScroll, by: number, y: number): TrafficScroll {
  const at = scroll.top + (y - padding) / scroll.k;
  const { k } = clampedScroll(picture, height, { ...scroll, k: scroll.k * by });
  return clampedScroll(picture, height, { k, top: at - (y - padding) / k });
}

/** parameterAt returns the parameter of the curve between the columns at a part (0 to 1) of the distance. */
export function parameterAt(part: number): number {
  let [low, high] = [0, 1];
  for (let i = 0; i < 24; i++) {
    const t = (low + high) / 2;
    if (1.5 * t - 1.5 * t * t + t * t * t < part) low = t;
    else high = t;
  }
  return (low + high) / 2;
}

/** heightAt returns the height of a strand's curve at a parameter. */
export const heightAt = ({ y1, y2 }: Pick<Strand, "y1" | "y2">, t: number): number => y1 * (1 - t) * (1 - t) * (1 + 2 * t) + y2 * t * t * (3 - 2 * t);

/** bundleAt returns the bundle at a part of the distance between the columns and a unit of height, within a tolerance in units. */
export function bundleAt({ strands }: Pick<TrafficPicture, "strands">, part: number, y: number, tolerance: number): number | undefined {
  const t = parameterAt(part);
  let best: number | undefined;
  let distance = tolerance;
  for (const strand of strands) {
    const away = Math.max(0, Math.abs(heightAt(strand, t) - y) - strand.width / 2);
    // A later strand lies on top of an earlier one.
    if (away <= distance) [distance, best] = [away, strand.bundle];
  }
  return best;
}

/** Overlay is the effect that a change would have on the links of the map. */
export interface Overlay {
  /** The places of the links that the change would cut, and of the links that it would let through. */
  cut: Set<number>;
  let: Set<number>;
  /** Pairs that the change concerns and the map does not show. */
  elsewhere: number;
}

/** overlayOf marks the links whose connections a change would cut off or newly let in. */
export function overlayOf(map: TrafficMap, impact: Pick<Impact, "newlyAllowed" | "newlyDenied">): Overlay {
  const pair = (from: { name: string; title: string }, to: { name: string; title: string }) => `${from.name || `=${from.title}`}\u0000${to.name || `=${to.title}`}`;
  const places = new Map<string, number>();
  map.links.forEach((link, index) => {
    const [from, to] = [map.nodes[link.from], map.nodes[link.to]];
    if (from && to) places.set(pair(from, to), index);
  });
  const out: Overlay = { cut: new Set(), let: new Set(), elsewhere: 0 };
  const missing = new Set<string>();
  for (const [lines, into] of [[impact.newlyDenied, out.cut], [impact.newlyAllowed, out.let]] as const) {
    for (const line of lines) {
      const key = pair(line.subject, line.resource);
      const at = places.get(key);
      if (at === undefined) missing.add(key);
      else into.add(at);
    }
  }
  return { ...out, elsewhere: missing.size };
}

/** hiddenIn reads the hidden kinds from the URL. */
export const hiddenIn = (search: URLSearchParams): Set<TrafficKind> => new Set(trafficKinds.filter((kind) => search.getAll("hide").includes(kind)));

/** trafficLevelOf reads the level from the URL; without one it is the level of teams. */
export const trafficLevelOf = (search: URLSearchParams): Level => levels.find((each) => each === search.get("level")) ?? "team";
