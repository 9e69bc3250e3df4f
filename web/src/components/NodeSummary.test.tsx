import { MantineProvider } from "@mantine/core";
import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { chooseLanguage } from "../i18n";
import type { NodeSummary as Summary } from "../api/types";
import { nodeSummary } from "../testing/fixtures";
import { theme } from "../theme";
import { NodeSummary } from "./NodeSummary";

const show = (nodes: Summary | undefined) =>
  render(
    <MantineProvider theme={theme} env="test">
      <NodeSummary nodes={nodes} />
    </MantineProvider>,
  );

describe("the nodes of a change", () => {
  it.each([
    ["all nodes of all members are realized", { total: 6, realized: 6 }, "ok", "Realized on 6 of 6 nodes"],
    ["a node lags", { total: 6, realized: 5, lagging: 1 }, "busy", "Realized on 5 of 6 nodes"],
    ["a node is unknown", { total: 6, realized: 5, unknown: 1 }, "warn", "Realized on 5 of 6 nodes"],
    ["a member does not report", { total: 6, realized: 6, unreported: 1 }, "idle", "Realized on 6 of 6 nodes"],
    ["no member reports", { members: 0, unreported: 2 }, "idle", "nodes not reported"],
  ] as [string, Partial<Summary>, string, string][])("are fine only if every node is realized: %s", (_, over, tone, text) => {
    show(nodeSummary(over));
    expect(screen.getByTestId("nodes")).toHaveAttribute("data-value", tone);
    expect(screen.getByText(text)).toBeVisible();
  });

  it("are listed by member, with the messages of the server", () => {
    show(
      nodeSummary({
        total: 3,
        realized: 1,
        lagging: 2,
        unreported: 1,
        messages: [
          { code: "nodes.realized", params: { realized: 1, total: 3 }, text: "Realized on 1 of 3 nodes." },
          { code: "nodes.unreported", params: { count: 1 }, text: "Members without reports about nodes: 1. There, realized means that the change is accepted by the API server." },
        ],
        clusters: [{ cluster: "m1", total: 3, realized: 1, lagging: 2, unknown: 0, laggingNodes: ["n2", "n3"], unknownNodes: [], message: { code: "verbatim", params: { text: "m1: lagging: n2, n3" }, text: "m1: lagging: n2, n3" } }],
      }),
    );
    expect(screen.getByText(/accepted by the API server/)).toBeVisible();
    expect(screen.getByText("m1: lagging: n2, n3")).toBeVisible();
    expect(screen.queryByText("Realized on 1 of 3 nodes.")).toBeNull();
  });

  it("say in both languages what is known without reports", async () => {
    await chooseLanguage("zh");
    show(nodeSummary({ members: 0, unreported: 2, messages: [{ code: "nodes.accepted", text: "There are no reports about nodes." }] }));
    expect(screen.getByText("没有关于节点的报告。“已落实”表示变更已被 API 服务器接受。")).toBeVisible();
  });

  it("are not shown while they are not known for the wanted revision", () => {
    show(undefined);
    expect(screen.queryByTestId("nodes")).toBeNull();
  });
});
