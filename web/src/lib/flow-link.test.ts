import { describe, expect, it } from "vitest";
import { flowFilterOf } from "./flow-filter";
import { item } from "../testing/fixtures";
import { flowsPath, itemFlowsPath, statementPath } from "./flow-link";

const app = { id: "app 888", name: "trnv1:rsc:a:iam:sa:app/888", title: "Shop" };
const unknown = { name: "*", title: "*" };

describe("the path of connections", () => {
  it("selects exactly these connections in the flow explorer", () => {
    const path = flowsPath({ subject: app, resource: { ...app, id: "cache&1" }, policy: "p", sid: "s" });
    const filter = flowFilterOf(new URL(path ?? "", "http://portal").searchParams);
    expect(filter).toMatchObject({ subject: ["app 888"], resource: ["cache&1"], policy: "p", sid: "s", window: "31d" });
  });

  it("does not exist where the explorer would show more than what is selected", () => {
    expect(flowsPath({ subject: unknown, resource: app })).toBeUndefined();
    expect(flowsPath({ subject: app, resource: unknown })).toBeUndefined();
    expect(flowsPath({})).toBeUndefined();
  });
});

describe("the path of the connections of an item", () => {
  const filterOf = (...args: Parameters<typeof itemFlowsPath>) => flowFilterOf(new URL(itemFlowsPath(...args) ?? "/", "http://portal").searchParams);
  const names = { effect: "Deny", subjects: ["trnv1:rsc:a:iam:sa:app/1", "trnv1:rsc:a:iam:sa:app/2"], resources: ["trnv1:rsc:a:redis:clusters:x"] } as const;
  const statement = (over: Partial<Parameters<typeof itemFlowsPath>[0]>) => item({ application: undefined, resource: undefined, policy: "portal-statements", sid: "t-9-1", actions: ["redis:connect"], scope: { ...names, subjects: [...names.subjects], resources: [...names.resources] }, ...over });

  it("selects the application, the resource and the actions of a grant", () => {
    expect(filterOf(item({ actions: ["redis:connect", "redis:admin"] }), "grant")).toMatchObject({ subject: ["app-888"], resource: ["bobs-cluster"], action: ["redis:connect", "redis:admin"], window: "31d" });
  });

  it("selects every action of the pair where the grant names them by a wildcard", () => {
    expect(filterOf(item({ actions: ["redis:*"] }), "grant")).toMatchObject({ subject: ["app-888"], action: [] });
  });

  it("selects the resource of a change of mode, and the application of an external workload", () => {
    expect(filterOf(item({ application: undefined, actions: undefined, toMode: "Enforce" }), "mode")).toMatchObject({ subject: [], resource: ["bobs-cluster"] });
    expect(filterOf(item({ resource: undefined, actions: undefined }), "workload")).toMatchObject({ subject: ["app-888"], resource: [] });
  });

  it("selects what a statement decided once it is written, and before that its names", () => {
    expect(filterOf(statement({ state: "effective" }), "statement")).toMatchObject({ policy: "portal-statements", sid: "t-9-1", subject: [], action: [] });
    expect(filterOf(statement({ state: "pending" }), "statement")).toMatchObject({ policy: undefined, subject: names.subjects, resource: names.resources, action: ["redis:connect"] });
  });

  it("searches the names that a class covers, and selects nothing while the class is not known", () => {
    const change = item({ application: undefined, resource: undefined, actions: undefined, object: { kind: "ResourceClass", name: "redis", verb: "update" } });
    const found = itemFlowsPath(change, "class", "trnv1:rsc:a:redis:clusters:*");
    expect(flowFilterOf(new URL(found ?? "/", "http://portal").searchParams)).toMatchObject({ q: "trnv1:rsc:a:redis:clusters:", subject: [], resource: [], window: "31d" });
    expect(itemFlowsPath(change, "class")).toBeUndefined();
    expect(itemFlowsPath(change, "class", "trnv1:rsc:*:redis:*")).toBeUndefined();
  });

  const pending = (subjects: string[], resources: string[] = [...names.resources]) => statement({ state: "pending", scope: { ...names, subjects, resources } });
  const apps = "trnv1:rsc:a:iam:sa:app/", clusters = "trnv1:rsc:a:redis:clusters:";

  it.each([
    ["anyone", pending(["*"]), { subject: [], resource: names.resources, q: undefined }],
    ["anyone beside a name", pending(["*", `${apps}1`]), { subject: [], resource: names.resources, q: undefined }],
    ["a prefix of applications", pending([`${apps}*`]), { subject: [], resource: names.resources, q: apps }],
    ["a prefix of resources", pending([`${apps}1`], [`${clusters}team-*`]), { subject: [`${apps}1`], resource: [], q: `${clusters}team-` }],
    ["anyone on a prefix of resources", pending(["*"], [`${clusters}*`]), { subject: [], resource: [], q: clusters }],
  ] as const)("selects what a statement about %s would be about", (_, of, want) => {
    expect(filterOf(of, "statement")).toMatchObject({ ...want, action: ["redis:connect"], window: "31d" });
  });

  it.each([
    ["an address range", pending(["trnv1:rsc:a:net:cidr:10.0.0.0/8"])],
    ["a prefix on both sides", pending([`${apps}*`], [`${clusters}*`])],
    ["a prefix beside a name", pending([`${apps}9*`, `${apps}1`])],
    ["two prefixes", pending([`${apps}1`], [`${clusters}a*`, `${clusters}b*`])],
    ["more names than the filter has values", pending(Array.from({ length: 51 }, (_, i) => `${apps}${i}`))],
  ] as const)("does not exist for %s, which no filter selects", (_, of) => {
    expect(itemFlowsPath(of, "statement")).toBeUndefined();
  });
});

describe("the path of a statement", () => {
  it("is on the page of its policy", () => {
    expect(statementPath("portal/redis", "t-9-1")).toBe("/access-policies/portal%2Fredis?sid=t-9-1");
  });
});
