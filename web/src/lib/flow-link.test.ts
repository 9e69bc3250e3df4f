import { describe, expect, it } from "vitest";
import { flowFilterOf } from "./flow-filter";
import { flowsPath } from "./flow-link";

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
