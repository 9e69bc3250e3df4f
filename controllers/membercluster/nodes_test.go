package membercluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/nodereport"
)

// TestNodesOfAMember checks that a node counts as reporting only while a recent report says that its agent is healthy.
func TestNodesOfAMember(t *testing.T) {
	old := now.Add(-nodereport.StaleAfter)
	f := healthy()
	f.Nodes = &federation.NodeView{
		Nodes: []string{"fine", "ill", "never", "old", "oldill", "future"},
		Reports: map[string]*nodereport.Report{
			"fine": {Time: now.Time, Healthy: true}, "ill": {Time: now.Time}, "old": {Time: old, Healthy: true}, "oldill": {Time: old},
			"future": {Time: now.Add(time.Hour), Healthy: true}, "removed": {Time: now.Time, Healthy: true},
		},
	}
	want := &v1alpha1.NodeReporting{Total: 6, Reporting: 1, Unhealthy: 1, Silent: 4, UnhealthyNodes: []string{"ill"},
		SilentNodes: []string{"never", "old", "oldill", "future"}}
	if d := cmp.Diff(want, f.status(&v1alpha1.MemberClusterStatus{}).Nodes); d != "" {
		t.Error(d)
	}
}

// TestNodesOfAMemberAreBounded checks that a status lists at most as many names as the API accepts.
func TestNodesOfAMemberAreBounded(t *testing.T) {
	f := healthy()
	f.Nodes = &federation.NodeView{Reports: map[string]*nodereport.Report{}}
	for i := range 500 {
		f.Nodes.Nodes = append(f.Nodes.Nodes, fmt.Sprintf("n%03d", i))
	}
	n := f.status(&v1alpha1.MemberClusterStatus{}).Nodes
	if n.Silent != 500 || len(n.SilentNodes) != maxNodeNames || n.SilentNodes[0] != "n000" {
		t.Errorf("%+v", n)
	}
}

// TestNodesAreNotKept checks that counts do not remain when the reports cannot be read any more.
func TestNodesAreNotKept(t *testing.T) {
	before := v1alpha1.MemberClusterStatus{Nodes: &v1alpha1.NodeReporting{Total: 3, Reporting: 3}}
	if n := healthy().status(&before).Nodes; n != nil {
		t.Errorf("%+v", n)
	}
}
