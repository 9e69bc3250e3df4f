package protectedresource

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/nodereport"
)

func TestNodesInTheStatus(t *testing.T) {
	now := time.Unix(1e9, 0)
	report := func(policies map[string]string) *nodereport.Report {
		r := &nodereport.Report{Time: now, Healthy: true, Policies: map[string]nodereport.Policy{}}
		for name, revision := range policies {
			r.Policies[name] = nodereport.Policy{Revision: revision, Realized: true}
		}
		return r
	}
	both := report(map[string]string{"acp-x": "r1", "acp-x-part-2": "r2"})
	desired := map[string]map[string]string{"acp-x": {"m1": "r1"}, "acp-x-part-2": {"m1": "r2"}, "istio-system/acp-x": {"m1": "r3"}}
	mixed := v1alpha1.NodeCounts{Total: 3, Realized: 1, Lagging: 1, Unknown: 1}
	for name, tc := range map[string]struct {
		nodes   map[string]*federation.NodeView
		desired map[string]map[string]string
		want    *v1alpha1.NodeSummary
	}{
		"NoMemberRunsIt": {desired: desired},
		"EveryObjectOnEveryNode": {desired: desired,
			nodes: map[string]*federation.NodeView{"m1": {Nodes: []string{"a", "b"}, Reports: map[string]*nodereport.Report{"a": both, "b": both}}},
			want:  &v1alpha1.NodeSummary{Members: 1, NodeCounts: v1alpha1.NodeCounts{Total: 2, Realized: 2}}},
		"OneObjectIsMissingAndOneNodeIsSilent": {desired: desired,
			nodes: map[string]*federation.NodeView{"m1": {Nodes: []string{"a", "b", "c"}, Reports: map[string]*nodereport.Report{
				"a": both, "b": report(map[string]string{"acp-x": "r1"}), "removed": both}}},
			want: &v1alpha1.NodeSummary{Members: 1, NodeCounts: mixed, Clusters: []v1alpha1.MemberNodes{
				{Name: "m1", NodeCounts: mixed, LaggingNodes: []string{"b"}, UnknownNodes: []string{"c"}}}}},
		"NothingIsWantedThere": {desired: map[string]map[string]string{"acp-x": {"m1": ""}},
			nodes: map[string]*federation.NodeView{"m1": {Nodes: []string{"a"}, Reports: map[string]*nodereport.Report{"a": both}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &facts{Now: now, Nodes: tc.nodes}
			if d := cmp.Diff(tc.want, f.nodes(tc.desired)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Many nodes with the longest names leave room for the members in the status.
func TestNodesInTheStatusAreBounded(t *testing.T) {
	f := &facts{Now: time.Unix(1e9, 0), Nodes: map[string]*federation.NodeView{}}
	desired := map[string]map[string]string{"acp-x": {}}
	for m := range 50 {
		v := &federation.NodeView{}
		for n := range 100 + m {
			v.Nodes = append(v.Nodes, fmt.Sprintf("%0253d", n))
		}
		cluster := fmt.Sprintf("m%02d", m)
		f.Nodes[cluster], desired["acp-x"][cluster] = v, "r1"
	}
	got := f.nodes(desired)
	if len(got.Clusters) != maxNodeMembers || got.Clusters[0].Name != "m49" || len(got.Clusters[0].UnknownNodes) != maxNodeNames || got.Unknown != got.Total {
		t.Errorf("%+v", got.NodeCounts)
	}
	text, err := json.Marshal(got)
	if err != nil || len(text) > 10_000 || sizeOfNodes(got) < len(text) || !strings.Contains(string(text), "unknownNodes") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
