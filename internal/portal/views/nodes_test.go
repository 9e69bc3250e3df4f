package views

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// sentences returns the messages of a summary, then those of its members, in a language.
func sentences(n *openapi.NodeSummary, l message.Language) string {
	if n == nil {
		return "nothing"
	}
	var out []string
	for _, m := range n.Messages {
		out = append(out, m.Render(l))
	}
	for _, c := range n.Clusters {
		out = append(out, c.Message.Render(l))
	}
	return strings.Join(out, " | ")
}

func TestNodesOfResource(t *testing.T) {
	mixed := v1alpha1.NodeCounts{Total: 9, Realized: 3, Lagging: 5, Unknown: 1}
	lagging := v1alpha1.MemberNodes{Name: "m1", NodeCounts: mixed, LaggingNodes: []string{"n1", "n2", "n3"}, UnknownNodes: []string{"n4"}}
	security, alice := approval.Actor{ID: "sue", Security: true}, approval.Actor{ID: "alice"}
	for name, tc := range map[string]struct {
		reason   string
		who      approval.Actor
		targeted int32
		nodes    *v1alpha1.NodeSummary
		handled  int64
		en, zh   string
	}{
		"NoReports": {"without reports, only the acceptance is known", security, 2, nil, 1,
			"There are no reports about nodes. Realized means that the change is accepted by the API server.",
			"没有关于节点的报告。“已落实”表示变更已被 API 服务器接受。"},
		"NoMember": {"a change that no member must have is on no node", security, 0, nil, 1, "nothing", "nothing"},
		"AllRealized": {"every node of every member reports", security, 2,
			&v1alpha1.NodeSummary{Members: 2, NodeCounts: v1alpha1.NodeCounts{Total: 6, Realized: 6}}, 1,
			"Realized on 6 of 6 nodes.", "已在 6 个节点中的 6 个上落实。"},
		"OtherMembers": {"members without reports are counted", security, 3,
			&v1alpha1.NodeSummary{Members: 2, NodeCounts: v1alpha1.NodeCounts{Total: 6, Realized: 6}}, 1,
			"Realized on 6 of 6 nodes. | Members without reports about nodes: 1. There, realized means that the change is accepted by the API server.",
			"已在 6 个节点中的 6 个上落实。 | 没有节点报告的成员集群数：1。在这些成员集群中，“已落实”表示变更已被 API 服务器接受。"},
		"LaggingAndUnknown": {"nodes are named, as far as they are listed", security, 1,
			&v1alpha1.NodeSummary{Members: 1, NodeCounts: mixed, Clusters: []v1alpha1.MemberNodes{lagging}}, 1,
			"Realized on 3 of 9 nodes. | m1: realized on 3 of 9 nodes; lagging: n1, n2, n3 and 2 more; unknown: n4",
			"已在 9 个节点中的 3 个上落实。 | m1：已在 9 个节点中的 3 个上落实；滞后：n1、n2、n3 等（另有 2 个）；未知：n4"},
		"WithoutNames": {"names of nodes are for the security team and auditors", alice, 1,
			&v1alpha1.NodeSummary{Members: 1, NodeCounts: mixed, Clusters: []v1alpha1.MemberNodes{lagging}}, 1,
			"Realized on 3 of 9 nodes. | m1: realized on 3 of 9 nodes; lagging: 5; unknown: 1",
			"已在 9 个节点中的 3 个上落实。 | m1：已在 9 个节点中的 3 个上落实；滞后：5；未知：1"},
		"MoreMembers": {"nodes in members that are not listed are counted", security, 30,
			&v1alpha1.NodeSummary{Members: 30, NodeCounts: v1alpha1.NodeCounts{Total: 90, Realized: 60, Lagging: 30}, Clusters: []v1alpha1.MemberNodes{
				{Name: "m1", NodeCounts: v1alpha1.NodeCounts{Total: 3, Realized: 1, Lagging: 2}, LaggingNodes: []string{"a", "b"}}}}, 1,
			"Realized on 60 of 90 nodes. | Nodes in other members that lag or are unknown: 28. | m1: realized on 1 of 3 nodes; lagging: a, b",
			"已在 90 个节点中的 60 个上落实。 | 其他成员集群中滞后或未知的节点数：28。 | m1：已在 3 个节点中的 1 个上落实；滞后：a、b"},
		"NotHandled": {"counts about an older generation are not shown", security, 1,
			&v1alpha1.NodeSummary{Members: 1, NodeCounts: v1alpha1.NodeCounts{Total: 6, Realized: 6}}, 0, "nothing", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.ProtectedResource{}
			p.Generation, p.Status.ObservedGeneration = 1, tc.handled
			p.Status.Members, p.Status.Nodes = &v1alpha1.MemberCounts{Total: tc.targeted, Targeted: tc.targeted}, tc.nodes
			got := NodesOfResource(tc.who, p)
			if en := sentences(got, message.English); en != tc.en {
				t.Errorf("%s: %s, want %s", tc.reason, en, tc.en)
			}
			if zh := sentences(got, message.Chinese); zh != tc.zh {
				t.Errorf("%s: %s, want %s", tc.reason, zh, tc.zh)
			}
			if tc.who.Security || got == nil {
				return
			}
			for _, c := range got.Clusters {
				if len(c.LaggingNodes)+len(c.UnknownNodes) > 0 || c.Lagging != 5 || c.Unknown != 1 {
					t.Errorf("%s: %+v", tc.reason, c)
				}
			}
		})
	}
}

type protectionHost struct {
	Host
	resource *v1alpha1.ProtectedResource
}

func (h protectionHost) Protection(string) *v1alpha1.ProtectedResource { return h.resource }

// TestNodesOfUnit checks that the counts of a resource are used for a policy's unit only if both are about the same revision.
func TestNodesOfUnit(t *testing.T) {
	p := &v1alpha1.ProtectedResource{}
	p.Status.Revision, p.Status.Nodes = "r1", &v1alpha1.NodeSummary{Members: 1, NodeCounts: v1alpha1.NodeCounts{Total: 2, Realized: 2}}
	for i, tc := range []struct {
		reason   string
		resource *v1alpha1.ProtectedResource
		revision string
		want     string
	}{
		{"the same revision", p, "r1", "Realized on 2 of 2 nodes."},
		{"the resource's status is about an older revision", p, "r2", "nothing"},
		{"a wildcard has no resource", nil, "r1", "There are no reports about nodes. Realized means that the change is accepted by the API server."},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			d := &Data{Host: protectionHost{resource: tc.resource}}
			u := &v1alpha1.PolicyUnit{Resource: "x", Revision: tc.revision, Members: &v1alpha1.MemberCounts{Total: 1, Targeted: 1}}
			if got := sentences(d.NodesOfUnit(approval.Actor{}, u), message.English); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
