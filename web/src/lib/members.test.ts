import { describe, expect, it } from "vitest";
import type { ClusterState } from "../api/types";
import { countStates, unlisted, worstFirst } from "./members";

const member = (cluster: string, state: ClusterState["state"]): ClusterState => ({ cluster, state });
const some = [member("m1", "Realized"), member("m2", "Pending"), member("m3", "Leaked"), member("m0", "Realized")];

describe("many members", () => {
  it("come with the worst first, and by name within a state", () => {
    expect(worstFirst(some, (each) => each.state).map((each) => each.cluster)).toEqual(["m3", "m2", "m0", "m1"]);
    expect(some[0]?.cluster).toBe("m1");
  });

  it("are counted by state, also those that are not listed", () => {
    expect(countStates(some)).toEqual([{ state: "Leaked", count: 1 }, { state: "Pending", count: 1 }, { state: "Realized", count: 2 }]);
    const counts = { total: 500, targeted: 500, waiting: 40, listed: 4, states: { Pending: 40, Realized: 460 } };
    expect(countStates(some, counts)).toEqual([{ state: "Pending", count: 40 }, { state: "Realized", count: 460 }]);
    expect(unlisted(counts)).toBe(496);
    expect(unlisted(undefined)).toBe(0);
  });
});
