import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { saidInChinese } from "../i18n/said.zh";
import { said } from "./said";

describe("what the server said", () => {
  it.each([
    ["a fixed sentence", "The statement is about to be removed.", "即将删除语句。"],
    ["a sentence with a name", "member m2 does not answer at https://127.0.0.1:6443", "成员集群 m2 在 https://127.0.0.1:6443 没有响应"],
    ["a quoted name", 'The catalog has no resource "x".', "目录中没有资源 x。"],
    ["the more exact form first", "Waiting for the adapter.", "等待适配器。"],
    ["a form with a semicolon", "Approved; the statement is about to be written.", "已批准，即将写入语句。"],
    ["a part that was made a sentence", "Waiting for m1, m2.", "等待 m1, m2。"],
    ["several parts", "Still to be taken back in m2; waiting for the adapter.", "尚未从 m2 收回；等待适配器。"],
    ["a name that looks like a pattern", "Nobody can decide for the owner of a.*$1: correct its owner in the catalog, or add a member to the group \"sec\".", "没有人可以代表 a.*$1 的负责人审批：请在目录中更正负责人，或为组 sec 添加成员。"],
    ["a sentence in a sentence", "member m2 is being listed, or, if it is gone for good, name it in the annotation a/b of the ProtectedResource", "正在列出成员集群 m2 的对象；如果它已永久下线，请在 ProtectedResource 的注解 a/b 中写上它"],
    ["what it is about", "the dataplane does not accept the policy: bad port", "数据面不接受策略：bad port"],
    ["a group in place of a policy", "group acp-x is not there yet", "地址组 acp-x还没有到达"],
    ["who deleted it is not known", "policy acp-x was deleted in the member; who did it is in the member's audit log; KubeFed writes it again", "策略 acp-x 在成员集群中被删除，删除者请查该集群的审计日志；KubeFed 会重新写入"],
    ["what is not known", "Something else.", "Something else."],
  ])("says %s in Chinese", (_, text, want) => {
    expect(said(text, "zh")).toBe(want);
  });

  it("leaves it alone in English", () => {
    expect(said("Waiting for m1.", "en")).toBe("Waiting for m1.");
  });

  it("puts back only parts that the sentence has", () => {
    for (const [form, translation] of Object.entries(saidInChinese)) {
      const parts = form.split("%s").length - 1;
      for (const [, group] of translation.matchAll(/\{\{(\d)\}\}/g)) expect(Number(group), form).toBeLessThanOrEqual(parts);
    }
  });

  it("knows only sentences that the server still says", () => {
    const root = join(import.meta.dirname, "../../..");
    const sources = ["internal", "controllers"]
      .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => join(root, folder, name)))
      .filter((name) => name.endsWith(".go") && !name.endsWith("_test.go"))
      .map((name) => readFileSync(name, "utf8"))
      .join("\n")
      .replace(/" \+\s+"/g, "");
    const stale = Object.keys(saidInChinese).filter((form) => form.split("%s").some((fixed) => fixed.trim().length > 3 && !sources.replace(/%[qd]/g, "%s").includes(fixed)));
    expect(stale).toEqual([]);
  });
});
