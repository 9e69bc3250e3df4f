import { describe, expect, it } from "vitest";
import type { TrafficMap } from "../api/types";
import { bundleAt, canvasHeight, clampedScroll, fittedScroll, heightAt, hiddenIn, overlayOf, padding, parameterAt, readingOrder, totals, trafficLevelOf, trafficPicture, widthOf, zoomedScroll } from "./traffic-map";
import type { TrafficView } from "./traffic-map";

const map: TrafficMap = {
  available: true,
  since: "2026-11-19T12:00:00Z",
  until: "2026-11-20T12:00:00Z",
  teams: [
    { kind: "group", id: "payments", displayName: "Payments" },
    { kind: "group", id: "storage", displayName: "Storage" },
  ],
  nodes: [
    { name: "app/1", title: "Checkout", kind: "application", id: "app-1", team: 0 },
    { name: "app/2", title: "Billing", kind: "application", team: 0 },
    { name: "", title: "203.0.113.0/24", kind: "unnamed" },
    { name: "redis:a", title: "A", kind: "resource", id: "a", team: 1 },
    { name: "redis:b", title: "B", kind: "resource", team: 1 },
    { name: "redis:*", title: "redis:*", kind: "wildcard" },
  ],
  links: [
    { from: 0, to: 3, allowed: 900, granted: true, lastUsed: "2026-11-20T10:00:00Z", lastSeen: "2026-11-20T10:00:00Z", ticket: "T-1" },
    { from: 1, to: 3, defaultDenied: 5, denied: 2, lastSeen: "2026-11-20T11:00:00Z" },
    { from: 1, to: 4, unmanaged: 0, lastSeen: "2026-11-20T09:00:00Z", lastUsed: "2026-11-20T09:00:00Z" },
    { from: 2, to: 4, audited: 3, lastSeen: "2026-11-20T08:00:00Z", lastUsed: "2026-11-20T08:00:00Z" },
    { from: 0, to: 5, granted: true },
  ],
  total: 5,
  cut: false,
};

const view = (over: Partial<TrafficView> = {}): TrafficView => ({ level: "team", toggled: new Set(), hidden: new Set(), team: undefined, ...over });
const sides = (picture: ReturnType<typeof trafficPicture>) => picture.nodes.map(({ side, key }) => `${side} ${key}`).sort();

describe("the picture of the traffic map", () => {
  it("puts the links of two teams together, with their connections by kind", () => {
    const picture = trafficPicture(map, view());
    expect(sides(picture)).toEqual(["client ~group:payments", "client ~~unnamed", "server ~group:storage", "server ~~wildcard"]);
    const bundle = picture.bundles.find(({ from, to }) => picture.nodes[from]?.title === "Payments" && picture.nodes[to]?.title === "Storage");
    expect(bundle).toMatchObject({ links: [0, 1, 2], counts: { allowed: 900, refused: 7, unmanaged: 0 }, granted: 1, unused: 0, lastSeen: "2026-11-20T11:00:00Z" });
    expect(picture.strands.filter(({ bundle: of }) => picture.bundles[of] === bundle).map(({ kind }) => kind).sort()).toEqual(["allowed", "refused", "unmanaged"]);
    expect(picture.nodes.find(({ title }) => title === "Payments")).toMatchObject({ names: 2, volume: 907, single: false });
  });

  it("shows applications at the second level, and resources at the third", () => {
    expect(sides(trafficPicture(map, view({ level: "application" })))).toEqual(["client =203.0.113.0/24", "client app/1", "client app/2", "server ~group:storage", "server ~~wildcard"]);
    const picture = trafficPicture(map, view({ level: "resource" }));
    expect(picture.bundles).toHaveLength(5);
    expect(picture.strands.map(({ kind }) => kind).sort()).toEqual(["allowed", "audited", "granted", "refused", "unmanaged"]);
    expect(picture.headers.map(({ side, title }) => [side, title])).toContainEqual(["server", "Storage"]);
  });

  it("unfolds and folds single groups", () => {
    expect(sides(trafficPicture(map, view({ toggled: new Set(["c:group:payments"]) })))).toEqual(["client app/1", "client app/2", "client ~~unnamed", "server ~group:storage", "server ~~wildcard"]);
    expect(sides(trafficPicture(map, view({ level: "resource", toggled: new Set(["s:group:storage"]) })))).toContain("server ~group:storage");
  });

  it("leaves out hidden kinds, and what only they connect", () => {
    const picture = trafficPicture(map, view({ level: "resource", hidden: new Set(["granted", "audited"]) }));
    expect(sides(picture)).toEqual(["client app/1", "client app/2", "server redis:a", "server redis:b"]);
    expect(picture.strands.every(({ kind }) => kind !== "granted" && kind !== "audited")).toBe(true);
    expect(trafficPicture(map, view({ team: "group:storage" })).nodes.some(({ key }) => key === "~~wildcard")).toBe(false);
  });

  it("gives each node a place of its own, and each strand one within its nodes", () => {
    for (const level of ["team", "application", "resource"] as const) {
      const picture = trafficPicture(map, view({ level }));
      for (const side of ["client", "server"] as const) {
        const nodes = picture.nodes.filter((node) => node.side === side).sort((a, b) => a.y - b.y);
        nodes.forEach((node, index) => {
          const below = nodes[index + 1];
          if (below) expect(node.y + node.height / 2).toBeLessThanOrEqual(below.y - below.height / 2);
          expect(node.y - node.height / 2).toBeGreaterThanOrEqual(0);
          expect(node.y + node.height / 2).toBeLessThanOrEqual(picture.height);
        });
      }
      for (const strand of picture.strands) {
        const bundle = picture.bundles[strand.bundle];
        const [from, to] = [picture.nodes[bundle?.from ?? -1], picture.nodes[bundle?.to ?? -1]];
        expect(Math.abs((from?.y ?? 0) - strand.y1)).toBeLessThanOrEqual((from?.height ?? 0) / 2);
        expect(Math.abs((to?.y ?? 0) - strand.y2)).toBeLessThanOrEqual((to?.height ?? 0) / 2);
      }
    }
  });

  it("is the same for the same answer, and nothing for none", () => {
    expect(trafficPicture(map, view())).toEqual(trafficPicture(structuredClone(map), view()));
    expect(trafficPicture({ ...map, nodes: [], links: [], teams: [] }, view())).toMatchObject({ nodes: [], strands: [], bundles: [], clients: 0, servers: 0 });
  });

  it("counts the links with each kind, and widens by the same amount for each tenfold number", () => {
    expect(totals(map)).toEqual({ allowed: 1, refused: 1, unmanaged: 1, audited: 1, granted: 1 });
    const step = widthOf("allowed", 999) - widthOf("allowed", 99);
    expect(widthOf("allowed", 9_999) - widthOf("allowed", 999)).toBeCloseTo(step);
    expect(widthOf("granted", 1_000)).toBeLessThan(widthOf("allowed", 0));
  });
});

describe("the window on the picture", () => {
  it("shows all of it at first, and never more than it", () => {
    const big = { height: 10_000 };
    const fitted = fittedScroll(big, 600);
    expect(fitted.k * big.height).toBeCloseTo(600 - 2 * padding);
    expect(clampedScroll(big, 600, { k: 1, top: -500 })).toEqual({ k: 1, top: 0 });
    expect(clampedScroll(big, 600, { k: 1, top: 50_000 }).top).toBe(10_000 - (600 - 2 * padding));
    expect(clampedScroll(big, 600, { k: 0.0001, top: 0 }).k).toBeCloseTo(fitted.k);
    expect(clampedScroll(big, 600, { k: 99, top: 0 }).k).toBe(3);
  });

  it("is as high as a picture of some rows, in which each name has its place, and lower for a larger one", () => {
    for (const height of [400, 900, 1_500]) {
      expect(canvasHeight({ height }, 860)).toBe(height + 2 * padding);
      expect(fittedScroll({ height }, canvasHeight({ height }, 860)).k).toBeCloseTo(1);
    }
    expect(canvasHeight({ height: 30 }, 860)).toBe(240);
    expect([canvasHeight({ height: 50_000 }, 860), canvasHeight({ height: 50_000 }, 300)]).toEqual([636, 440]);
  });

  it("keeps the point under the pointer in its place when it zooms", () => {
    const before = { k: 0.5, top: 4_000 };
    const after = zoomedScroll({ height: 10_000 }, 600, before, 2, 300);
    expect(after.k).toBe(1);
    expect(after.top + (300 - padding) / after.k).toBeCloseTo(before.top + (300 - padding) / before.k);
  });
});

describe("reading single lines", () => {
  it("finds the line under the pointer along its curve, the upper one first", () => {
    const strands = [
      { bundle: 0, kind: "allowed" as const, width: 4, y1: 10, y2: 100 },
      { bundle: 1, kind: "refused" as const, width: 2, y1: 60, y2: 60 },
    ];
    expect(heightAt(strands[0] ?? { y1: 0, y2: 0 }, parameterAt(0.5))).toBeCloseTo(55);
    expect(bundleAt({ strands }, 0.01, 11, 3)).toBe(0);
    expect(bundleAt({ strands }, 0.99, 99, 3)).toBe(0);
    expect(bundleAt({ strands }, 0.2, 60, 3)).toBe(1);
    expect(bundleAt({ strands }, 0.2, 400, 3)).toBeUndefined();
  });

  it("visits every line once, from top to bottom", () => {
    const picture = trafficPicture(map, view({ level: "resource" }));
    const order = readingOrder(picture);
    expect([...order].sort()).toEqual(picture.bundles.map((_, index) => index));
    const tops = order.map((index) => picture.nodes[picture.bundles[index]?.from ?? -1]?.y ?? 0);
    expect(tops).toEqual([...tops].sort((a, b) => a - b));
  });
});

describe("a change over the map", () => {
  const line = (subject: string, resource: string, title = subject) => ({ subject: { name: subject, title }, resource: { name: resource, title: resource }, port: 1, protocol: "TCP", count: 1, firstSeen: "", lastSeen: "", before: "allowed" as const, after: "denied" as const });

  it("marks the links that would be cut or let in, once each, and counts what the map does not show", () => {
    const overlay = overlayOf(map, { newlyDenied: [line("app/1", "redis:a"), line("app/1", "redis:a"), line("app/9", "redis:a"), line("", "redis:b", "203.0.113.0/24")], newlyAllowed: [line("app/2", "redis:a")] });
    expect(overlay).toEqual({ cut: new Set([0, 3]), let: new Set([1]), elsewhere: 1 });
  });
});

describe("the address of the map", () => {
  it("ignores values that are not allowed", () => {
    expect(hiddenIn(new URLSearchParams("hide=allowed&hide=all&hide=refused"))).toEqual(new Set(["allowed", "refused"]));
    expect([trafficLevelOf(new URLSearchParams("level=resource")), trafficLevelOf(new URLSearchParams("level=x"))]).toEqual(["resource", "team"]);
  });
});
