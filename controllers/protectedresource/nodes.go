package protectedresource

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

const (
	// maxNodeMembers and maxNodeNames bound what a status lists about nodes.
	maxNodeMembers = 10
	maxNodeNames   = 3
)

// observeNodes reads what is known about the nodes of the members that may have the unit.
func (r *Reconciler) observeNodes(f *facts, members []string) {
	if r.Nodes == nil || !f.enforcedBy(v1alpha1.EnforcerCilium) {
		return
	}
	f.Nodes = map[string]*federation.NodeView{}
	for _, c := range members {
		if v := r.Nodes(c); v != nil {
			f.Nodes[c] = v
		}
	}
}

// nodes returns on how many nodes the objects that are wanted for Cilium are enforced, or nil if no member that must have
// the unit runs acp-node. A removal is not counted: a member that must have no object is not in the summary.
func (f *facts) nodes(desired map[string]map[string]string) *v1alpha1.NodeSummary {
	out := &v1alpha1.NodeSummary{}
	var incomplete []v1alpha1.MemberNodes
	for cluster, view := range f.Nodes {
		wanted := map[string]string{}
		for object, revisions := range desired {
			if revision := revisions[cluster]; revision != "" && !strings.Contains(object, "/") { // objects of Istio have a namespace
				wanted[object] = revision
			}
		}
		if len(wanted) == 0 {
			continue
		}
		realized, lagging, unknown := view.Of(wanted, f.Now)
		one := v1alpha1.MemberNodes{Name: v1alpha1.ClusterName(cluster), NodeCounts: v1alpha1.NodeCounts{
			Total: count(len(view.Nodes)), Realized: count(realized), Lagging: count(len(lagging)), Unknown: count(len(unknown))},
			LaggingNodes: lagging[:min(len(lagging), maxNodeNames)], UnknownNodes: unknown[:min(len(unknown), maxNodeNames)]}
		out.Members++
		out.Total += one.Total
		out.Realized += one.Realized
		out.Lagging += one.Lagging
		out.Unknown += one.Unknown
		if one.Realized < one.Total {
			incomplete = append(incomplete, one)
		}
	}
	if out.Members == 0 {
		return nil
	}
	slices.SortFunc(incomplete, func(a, b v1alpha1.MemberNodes) int {
		return cmp.Or(cmp.Compare(b.Total-b.Realized, a.Total-a.Realized), cmp.Compare(a.Name, b.Name))
	})
	out.Clusters = incomplete[:min(len(incomplete), maxNodeMembers)]
	if len(out.Clusters) == 0 {
		out.Clusters = nil
	}
	return out
}

func count(n int) int32 { return int32(min(n, 1<<20)) } //nolint:gosec // it is bounded

// sizeOfNodes returns the size of the JSON of a summary.
func sizeOfNodes(n *v1alpha1.NodeSummary) int {
	if n == nil {
		return 0
	}
	text, err := json.Marshal(n)
	if err != nil {
		return 0 // a summary of numbers and names is always JSON
	}
	return len(`"nodes":,`) + len(text)
}
