import { describe, expect, it } from "vitest";
import type { Access } from "../api/types";
import { app888, bobsCluster } from "../testing/fixtures";
import { grantOf } from "./grants";

const allow: Access = { effect: "Allow", subject: app888, resource: bobsCluster, actions: ["redis:connect"], policy: "p", sid: "t-42-1", counting: true };
const wanted = { subject: app888, resource: bobsCluster, action: "redis:connect" };

describe("what is granted already", () => {
  it.each([
    { reason: "it is", items: [allow], want: "t-42-1" },
    { reason: "nothing is", items: [], want: undefined },
    { reason: "it has no effect now", items: [{ ...allow, counting: false }], want: undefined },
    { reason: "another action", items: [{ ...allow, actions: ["redis:admin"] }], want: undefined },
    { reason: "another application", items: [{ ...allow, subject: { name: "app/889", title: "" } }], want: undefined },
    { reason: "another resource", items: [{ ...allow, resource: { name: "other", title: "" } }], want: undefined },
    { reason: "a deny is stronger", items: [allow, { ...allow, effect: "Deny" as const, sid: "no" }], want: undefined },
    { reason: "a deny without effect is not", items: [{ ...allow, effect: "Deny" as const, sid: "no", counting: false }, allow], want: "t-42-1" },
  ])("$reason", ({ items, want }) => expect(grantOf(items, wanted)?.sid).toBe(want));

  it("a port of no action is granted by nothing", () => expect(grantOf([allow], { ...wanted, action: undefined })).toBeUndefined());
});
