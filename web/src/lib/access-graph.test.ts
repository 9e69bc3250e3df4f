import { describe, expect, it } from "vitest";
import type { AccessGraph } from "../api/types";
import { levelBelow, pictureOf, rowHeight, zoomed } from "./access-graph";

const graph: AccessGraph = {
  teams: [
    { kind: "group", id: "payments", displayName: "Payments" },
    { kind: "group", id: "storage", displayName: "Storage" },
  ],
  nodes: [
    { name: "app/1", title: "Checkout", kind: "application", teams: [0] },
    { name: "app/2", title: "Billing", kind: "application", teams: [0, 1] },
    { name: "*", title: "*", kind: "anyone" },
    { name: "redis:a", title: "A", kind: "resource", teams: [1], mode: "Enforce" },
    { name: "redis:b", title: "B", kind: "resource", teams: [1] },
    { name: "redis:*", title: "redis:*", kind: "wildcard" },
  ],
  links: [
    { from: 0, to: 3, statements: 2, allow: true, counting: true },
    { from: 1, to: 3, statements: 1, deny: true },
    { from: 1, to: 4, statements: 1, allow: true },
    { from: 2, to: 5, statements: 1, allow: true, wildcard: true },
  ],
  total: 4,
  cut: false,
};

describe("the picture of who reaches what", () => {
  it("has teams on both sides at the first level, and puts their links together", () => {
    const { nodes, links, clients, servers } = pictureOf(graph, "team");
    expect([clients, servers]).toEqual([2, 2]);
    expect(nodes.map(({ side, kind, title, names }) => [side, kind, title, names])).toEqual([
      ["client", "team", "Payments", 2],
      ["client", "anyone", "", 1],
      ["server", "team", "Storage", 2],
      ["server", "wildcard", "", 1],
    ]);
    expect(links).toEqual([
      { from: 0, to: 2, statements: 4, deny: true, allow: true, counting: true, broad: false },
      { from: 1, to: 3, statements: 1, deny: false, allow: true, counting: false, broad: true },
    ]);
  });

  it("has applications and teams at the second, applications and resources at the third", () => {
    expect(pictureOf(graph, "application")).toMatchObject({ clients: 3, servers: 2 });
    const { nodes, clients, servers, links } = pictureOf(graph, "resource");
    expect([clients, servers, links.length]).toEqual([3, 3, 4]);
    expect(nodes.find(({ title }) => title === "A")).toMatchObject({ mode: "Enforce", focus: { resource: "redis:a" } });
    expect(nodes.find(({ title }) => title === "Billing")).toMatchObject({ focus: { subject: "app/2" } });
  });

  it("gives each a place of its own within the height", () => {
    const { nodes, height } = pictureOf(graph, "resource");
    expect(height).toBe(3 * rowHeight);
    for (const side of ["client", "server"]) {
      const places = nodes.filter((node) => node.side === side).map(({ y }) => y);
      expect(new Set(places).size).toBe(places.length);
      for (const y of places) expect(y > 0 && y < height).toBe(true);
    }
  });

  it("is the same for the same answer, and nothing for none", () => {
    expect(pictureOf(graph, "team")).toEqual(pictureOf(structuredClone(graph), "team"));
    expect(pictureOf({ ...graph, nodes: [], links: [], teams: [] }, "team")).toMatchObject({ nodes: [], links: [], clients: 0, servers: 0 });
  });

  it("leads from a team to what is in it", () => {
    expect([levelBelow("team", { kind: "team" }), levelBelow("application", { kind: "team" }), levelBelow("resource", { kind: "resource" })]).toEqual(["application", "resource", "resource"]);
  });

  it("keeps the point under the pointer in its place when it zooms, within bounds", () => {
    const next = zoomed({ x: 10, y: 20, k: 1 }, 2, 110, 120);
    expect(next).toEqual({ k: 2, x: -90, y: -80 });
    expect(zoomed({ x: 0, y: 0, k: 1 }, 1_000, 0, 0).k).toBe(3);
    expect(zoomed({ x: 0, y: 0, k: 1 }, 0, 0, 0).k).toBe(0.02);
  });
});
