import { describe, expect, it } from "vitest";
import { bob, carol, cluster, item, step, ticket } from "../testing/fixtures";
import { byChain, expiryOfTicket, sumClusters, sumSteps, votesOf } from "./items";

describe("the sum of items", () => {
  it("says of each step the least advanced state, and how many items are past it", () => {
    const items = [
      item({ steps: [step("leader", "approved", [carol]), step("owner", "approved", [bob])] }),
      item({ steps: [step("leader", "approved", [carol]), step("owner", "current", [bob])] }),
      item({ steps: [step("leader", "approved", [carol])] }),
    ];
    expect(sumSteps(items)).toEqual([
      { name: "leader", state: "approved", done: 3, of: 3 },
      { name: "owner", state: "current", done: 1, of: 2 },
    ]);
  });

  it("says of each member the worst state, in the order of their names", () => {
    const items = [item({ clusters: [cluster("m2", "Realized"), cluster("m1", "Realized")] }), item({ clusters: [cluster("m2", "Unreachable"), cluster("m1", "Pending")] })];
    expect(sumClusters(items).map((each) => `${each.cluster} ${each.state}`)).toEqual(["m1 Pending", "m2 Unreachable"]);
  });

  it("says the same chain once", () => {
    const same = { steps: [step("leader", "waiting", [carol])] };
    const other = { steps: [step("leader", "waiting", [carol]), step("owner", "waiting", [bob])] };
    expect(byChain([same, other, { steps: [step("leader", "waiting", [carol])] }]).map((chain) => chain.items.length)).toEqual([2, 1]);
  });

  it("ends when the first grant in force does", () => {
    const of = ticket({
      state: "effective",
      items: [
        item({ state: "effective", expiresAt: "2026-12-20T10:00:00Z" }),
        item({ position: 1, state: "revoked", expiresAt: "2026-11-21T10:00:00Z" }),
        item({ position: 2, state: "effective", expiresAt: "2026-12-01T10:00:00Z" }),
      ],
    });
    expect(expiryOfTicket(of)).toBe("2026-12-01T10:00:00Z");
  });

  it("counts approvals and not rejections towards a quorum", () => {
    const votes = [{ person: bob, approve: true, at: "2026-11-20T10:00:00Z" }, { person: carol, approve: false, at: "2026-11-20T10:00:00Z" }];
    expect(votesOf(step("security", "current", [bob, carol], { quorum: 2, votes }))).toEqual({ has: 1, needs: 2 });
  });
});
