package membercluster

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// maxNodeNames is the maximum number of names of unhealthy nodes, and of silent nodes, in a status.
const maxNodeNames = 10

// nodesOf counts the nodes of a member by what acp-node reports about them at an instant; nil if nothing is known.
func nodesOf(view *federation.NodeView, now time.Time) *v1alpha1.NodeReporting {
	if view == nil {
		return nil
	}
	reporting, unhealthy, silent := view.Agents(now)
	return &v1alpha1.NodeReporting{
		Total: nodeCount(len(view.Nodes)), Reporting: nodeCount(reporting), Unhealthy: nodeCount(len(unhealthy)), Silent: nodeCount(len(silent)),
		UnhealthyNodes: unhealthy[:min(len(unhealthy), maxNodeNames)], SilentNodes: silent[:min(len(silent), maxNodeNames)],
	}
}

func nodeCount(n int) int32 { return int32(min(n, 1<<20)) } //nolint:gosec // it is bounded
