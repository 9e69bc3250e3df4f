import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { saidInChinese } from "../i18n/said.zh";
import { said } from "./said";

const root = join(import.meta.dirname, "../../..");

/** Where a Go text goes on in the next line. */
const joined = /" ?\+\n\s*"/g;

/** The texts of three and more words in Go sources, with what varies as %s. */
function sentences(path: string): string[] {
  const at = join(root, path);
  const files = statSync(at).isDirectory() ? readdirSync(at).map((name) => join(at, name)) : [at];
  return files
    .filter((name) => name.endsWith(".go") && !name.endsWith("_test.go"))
    .flatMap((name) => [...readFileSync(name, "utf8").replace(/^\s*\/\/.*$/gm, "").replace(joined, "").matchAll(/"((?:[^"\\\n]|\\.)*)"/g)])
    .map(([, text]) => (text ?? "").replace(/%[a-z]/g, "%s"))
    .filter((text) => text.trim().split(" ").filter((word) => /^[a-z']{2,}/i.test(word)).length > 2);
}

/** What is only logged, and errors of ACP itself, which say nothing that anybody could do. */
const unshown = [
  "it has to be confirmed",
  "the workloads have changed since",
  "81 of 70, a part without any point",
  ", a part without any point",
  "read the class: %s",
  "read the protection: %s",
  "tickets could not be followed; it is tried again",
  "a ticket's statement was changed outside the portal",
  "+ each step by somebody else",
  "approval service: stores, catalog, host and clock are required",
  "revoke %s: %s may not use %s of %s any more",
  "no job is due",
  "the job's lease is lost",
  "the outbox could not be worked on; it is tried again",
  "a resource is not onboarded by its class's default mode",
  "a job could not be done",
  "make the token: %s",
  // Help of metrics.
  "Requests by route and status.",
  "How long requests took, event streams excluded.",
  "Requests refused because a budget was used up.",
  "Open event streams.",
  "Tickets by state.",
  "Jobs of the outbox that are not done.",
  "How long the oldest job of the outbox has been due.",
  "Browser sessions that have not ended.",
  "Machine tokens that have not ended.",
  "How long the stages of tickets took; those without a cluster are about all of them.",
  "FederatedNamespace cannot be written, so Istio's policies reach no member",
  "Wrote the FederatedNamespace of Istio's root namespace",
  "encode the deny %s: %s",
  "%s for %s: it has no id",
  "%s %s: no label selects its pods",
  "%s %s: it was compiled without its statements",
];

describe("what the server said", () => {
  it.each([
    ["a fixed sentence", "The statement is about to be removed.", "即将删除语句。"],
    ["a sentence with a name", "member m2 does not answer at https://127.0.0.1:6443", "成员集群 m2 在 https://127.0.0.1:6443 没有响应"],
    ["the more exact form first", "Waiting for the adapter.", "等待适配器。"],
    ["a form with a semicolon", "Approved; the statement is about to be written.", "已批准，即将写入语句。"],
    ["a part that was made a sentence", "Waiting for m1, m2.", "等待 m1, m2。"],
    ["some of many members", "Waiting for m1, m2 and 38 more members.", "等待 m1, m2 以及另外 38 个成员集群。"],
    ["members without names", "Still to be taken back in 3 members.", "尚未从 3 个成员集群收回。"],
    ["a policy that is too large", "Waiting: the policy has more resources than its status has room for, so it does not say how far this one is; take other resources out of the policy.", "等待：该策略的资源数超出其状态所能容纳的范围，无法得知此资源的进度；请将其他资源移出该策略。"],
    ["a refusal without its reason", "The statement is not enforced: it is refused, and the policy's status has no room for the reason; kubectl acp lint says it", "语句没有生效：它被拒绝，而该策略的状态中放不下原因；可用 kubectl acp lint 查看"],
    ["a refused statement among the findings", "The statement is refused. The policy's status has no room for the reason; kubectl acp lint says it.", "该语句被拒绝，而该策略的状态中放不下原因；可用 kubectl acp lint 查看。"],
    ["a finding without its reason", "The reason is not in the status, which has room for those of the worst members only; the adapter's Event about this member has it.", "状态中没有原因，因为它只容得下最严重成员集群的原因；适配器关于该成员集群的事件中有原因。"],
    ["several parts", "Still to be taken back in m2; waiting for the adapter.", "尚未从 m2 收回；等待适配器。"],
    ["a sentence in a sentence", "member m2 is being listed, or, if it is gone for good, name it in the annotation a/b of the ProtectedResource", "正在列出成员集群 m2 的对象；如果它已永久下线，请在 ProtectedResource 的注解 a/b 中写上它"],
    ["what it is about", "the dataplane does not accept the policy: bad port", "数据面不接受策略：bad port"],
    ["a group in place of a policy", "group acp-x is not there yet", "地址组 acp-x还没有到达"],
    ["who deleted it is not known", "policy acp-x was deleted in the member; who did it is in the member's audit log; KubeFed writes it again", "策略 acp-x 在成员集群中被删除，删除者请查该集群的审计日志；KubeFed 会重新写入"],
    ["a refusal of some members", "in m2, m3: the member declares no Istio that enforces", "在 m2, m3 中：该成员集群没有声明可执行策略的 Istio"],
    ["a refusal with two names", "trnv1:rsc:t:iam:sa:app/A: app-A cannot be the name of a service account", "trnv1:rsc:t:iam:sa:app/A：app-A 不能作为服务账号的名称"],
    ["a reason in a refusal", 'http:call: "a.*b" has .* in the middle, or on both sides: write literals, alternatives, and one .* at the end or the beginning', "http:call：a.*b 的 .* 在中间，或两端都有：请写成字面文本、多个选项，以及开头或结尾处的一个 .*"],
    ["a declaration that is wrong", 'in m2: what the member declares about its Istio cannot be read: invalid Istio configuration: version "2.0" is not one of Istio 1, such as 1.31', "在 m2 中：该成员集群对自身 Istio 的声明无法读取：Istio 配置无效：版本 2.0 不是 Istio 1 的版本（例如 1.31）"],
    ["who opened it", "AuthorizationPolicy pay/theirs is not of ACP and lets more in: ask who wrote it to remove it, and ask for what it is needed for as grants", "AuthorizationPolicy pay/theirs 不是 ACP 的策略，却放行了更多访问：请联系其作者删除，所需的访问请通过授权申请"],
    [
      "a setting of a dataplane",
      `the policy is there, and the member enforces nothing of it: Cilium's enable-policy is "never" in ConfigMap kube-system/cilium-config: nothing is refused there`,
      "策略已在成员集群中，但该集群并不执行它：ConfigMap kube-system/cilium-config 中 Cilium 的 enable-policy 为 never：那里不会拒绝任何连接",
    ],
    ["why a refused write is not tried again", "The host cluster refused the statement: the requester may not ask for it any more", "主集群拒绝了这条语句：申请人已无权申请它"],
    ["why it may not be applied any more", "The approval policies do not allow it any more.", "审批策略已不再允许它。"],
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

  const unknown = (path: string) =>
    sentences(path).filter((sentence) => !unshown.includes(sentence) && !known.some((form) => form === sentence || form.split("%s").some((fixed) => fixed.trim() === sentence.trim())));
  const known = Object.keys(saidInChinese);

  // The sentences that tickets, workloads and the Istio enforcer send: reasons for refusals, and the state of a member's policies.
  it.each([
    ["internal/approval", "what a ticket says"],
    ["internal/catalog/workloads", "why a workload is not registered"],
    ["internal/enforcer/istio", "the translation"],
    ["internal/federation/rootnamespace.go", "the way to the members"],
    ["controllers/dataplane/drivers.go", "what is rendered"],
    ["controllers/protectedresource/enforced.go", "what decides in a member"],
    ["internal/portal/change/dataplane.go", "the change of a ticket"],
  ])("has a Chinese form for every sentence in %s, %s", (path) => {
    expect(unknown(path)).toEqual([]);
  });

  // The portal's own sentences. What is not a whole one names a field of the API, which only programs send wrong.
  it("has a Chinese form for every whole sentence in internal/portal", () => {
    expect(unknown("internal/portal").filter((text) => /^[A-Z].*\.$/.test(text))).toEqual([]);
  });

  it("knows only sentences that the server still says", () => {
    const sources = ["internal", "controllers"]
      .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => join(root, folder, name)))
      .filter((name) => name.endsWith(".go") && !name.endsWith("_test.go"))
      .map((name) => readFileSync(name, "utf8"))
      .join("\n")
      .replace(joined, "")
      .replace(/%[qd]/g, "%s");
    const stale = Object.keys(saidInChinese).filter((form) => form.split("%s").some((fixed) => fixed.trim().length > 3 && !sources.includes(fixed)));
    expect(stale).toEqual([]);
  });
});
