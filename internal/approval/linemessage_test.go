package approval_test

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// TestLineMessages checks that lines are shown in other languages, and that their English text, to whose digest approvals are bound,
// stays as it is.
func TestLineMessages(t *testing.T) {
	for line, zh := range map[string]string{
		"allow pods with app=888 to pods with redis=bobs on 6379/TCP":               "允许 标签为 app=888 的 Pod 访问 标签为 redis=bobs 的 Pod 的 6379/TCP",
		"deny anyone to pods with redis in (a, b) on 80/TCP GET /x":                 "拒绝 任何来源 访问 标签 redis 为 a, b 之一的 Pod 的 80/TCP GET /x",
		"allow service account app-888 to pods with redis=bobs on 1-9/TCP by istio": "允许 服务账号 app-888 访问 标签为 redis=bobs 的 Pod 的 1-9/TCP，由 istio 执行",
		"allow service accounts of app-* to pods with redis on 1/TCP by istio":      "允许 符合 app-* 的服务账号 访问 标签为 redis 的 Pod 的 1/TCP，由 istio 执行",
		"deny no service account to pods with redis=bobs on 1/TCP by istio":         "拒绝 没有服务账号的来源 访问 标签为 redis=bobs 的 Pod 的 1/TCP，由 istio 执行",
		"allow addresses ::/8 but ::1 but ::2 to pods with a=b on 1/TCP":            "允许 地址 ::/8（::1 除外）（::2 除外） 访问 标签为 a=b 的 Pod 的 1/TCP",
		"allow workloads outside the fleet of trnv1:a to pods with a=b on 1/TCP":    "允许 集群之外属于 trnv1:a 的工作负载 访问 标签为 a=b 的 Pod 的 1/TCP",
		"allow anyone to pods with a=b on 9/TCP, a port of no action":               "允许 任何来源 访问 标签为 a=b 的 Pod 的 9/TCP，此端口不属于任何操作",
		"allow trnv1:app/888: redis:connect on trnv1:bobs for 168h0m0s":             "允许 trnv1:app/888 对 trnv1:bobs 执行 redis:connect，时长 168h0m0s",
		"allow trnv1:app/888: redis:connect on trnv1:bobs until revoked":            "允许 trnv1:app/888 对 trnv1:bobs 执行 redis:connect，直至回收",
		"allow workloads outside the fleet of trnv1:a: redis:connect on trnv1:bobs": "允许 集群之外属于 trnv1:a 的工作负载 对 trnv1:bobs 执行 redis:connect",
		"allow connections to pods with a=b in member m1":                           "允许连接 标签为 a=b 的 Pod：在成员集群 m1 中",
		"allow connections to pods with a in (b, c) in members with zone in (x)":    "允许连接 标签 a 为 b, c 之一的 Pod：在标签符合 zone in (x) 的成员集群中",
		"allow connections to pods with a=b enforced by cilium":                     "允许连接 标签为 a=b 的 Pod：由 cilium 执行",
		"workloads outside the fleet: g1 10.1.2.3/32":                               "集群之外的工作负载：g1 10.1.2.3/32",
		"workloads outside the fleet of trnv1:a: 2001:db8::/64":                     "集群之外属于 trnv1:a 的工作负载：2001:db8::/64",
		"pods with a=b in Enforce":                                                  "标签为 a=b 的 Pod：强制模式",
		"pods with a in (b, c) in Audit in member m1":                               "标签 a 为 b, c 之一的 Pod：在成员集群 m1 中为审计模式",
		"only during Mon-Fri 09:00-18:00 (Europe/Berlin)":                           "仅限以下时段：Mon-Fri 09:00-18:00 (Europe/Berlin)",
		"in every member":         "在所有成员集群中",
		"in members with zone=eu": "在标签符合 zone=eu 的成员集群中",
		"enforced by istio":       "由 istio 执行",
		"revoke t-42-1: trnv1:app/888 may not use a:c, a:d of trnv1:b any more": "回收 t-42-1：trnv1:app/888 不能再对 trnv1:b 执行 a:c、a:d",
		"takes away: in member m1":                                                 "收回：在成员集群 m1 中",
		"no longer: deny anyone to pods with a=b on 1/TCP":                         "不再：拒绝 任何来源 访问 标签为 a=b 的 Pod 的 1/TCP",
		"+ allow pods with a=1 to pods with b=2 on 22/TCP":                         "+ 允许 标签为 a=1 的 Pod 访问 标签为 b=2 的 Pod 的 22/TCP",
		"- pods with a=b in Observe":                                               "- 标签为 a=b 的 Pod：观察模式",
		"update ResourceClass redis":                                               "修改 ResourceClass redis",
		"and 12 more: 0a1b":                                                        "以及另外 12 行：0a1b",
		"nothing: the resource cannot be compiled":                                 "无：该资源无法编译",
		"refused: no Envoy answers":                                                "不会执行：no Envoy answers",
		"refused: in m1: the member declares no Istio that enforces":               "不会执行：在 m1 中：该成员集群没有声明可执行策略的 Istio",
		"refused: name each subject":                                               "不会执行：请逐个列出主体",
		"+ owner:trnv1:bobs: 1 of owner-of:trnv1:bobs":                             "+ trnv1:bobs 的负责人：trnv1:bobs 的负责人 中的 1 人",
		"+ leader: 1 of requester.leader":                                          "+ 上级：申请人的上级 中的 1 人",
		"+ dba: 2 of group:dba, person:carol, resource.owner, owner-of:trnv1:bobs": "+ dba：组 dba 的成员、人员 carol、资源负责人、trnv1:bobs 的负责人 中的 2 人",
		"+ each step by a different person":                                        "+ 每个步骤由不同的人审批",
		// The same in every language.
		`+ spec.addresses[0]: "192.0.2.0/24"`: `+ spec.addresses[0]: "192.0.2.0/24"`,
		`~ spec.labelKey: "" -> "app"`:        `~ spec.labelKey: "" -> "app"`,
		// In no form of this version.
		"allow":                        "allow",
		"pods with a=b in Elsewhere":   "pods with a=b in Elsewhere",
		"in the form of a later day":   "in the form of a later day",
		"+ app/888 -> 6380/TCP":        "+ app/888 -> 6380/TCP",
		"allow connections to nowhere": "allow connections to nowhere",
	} {
		m := approval.LineMessage(line)
		if m.Text != line {
			t.Errorf("the text of %q became %q", line, m.Text)
		}
		if got := m.Render(message.Chinese); got != zh {
			t.Errorf("%q is shown as %q, want %q", line, got, zh)
		}
	}
}

// FuzzLineMessage checks that no line changes its text.
func FuzzLineMessage(f *testing.F) {
	f.Add("+ allow pods with a=1 to pods with b=2 on 22/TCP by istio")
	f.Add("allow a: b on c for 1h")
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ToValidUTF8(line, "") != line {
			return
		}
		if m := approval.LineMessage(line); m.Text != line {
			t.Errorf("the text of %q became %q", line, m.Text)
		}
	})
}
