package hubble

import "github.com/acp-io/acp/internal/audit"

// RawFlows selects the flows that are stored individually, in addition to the roll-ups, which count all flows.
type RawFlows string

const (
	// RawFlowsNone selects no flows.
	RawFlowsNone RawFlows = "none"
	// RawFlowsRefused selects flows that the dataplane dropped or that the policies deny.
	RawFlowsRefused RawFlows = "refused"
	// RawFlowsAll selects all flows.
	RawFlowsAll RawFlows = "all"
)

func (k RawFlows) includes(r *decision) bool {
	return k == RawFlowsAll || k == RawFlowsRefused && r.refused
}

// FlowListener receives every counted connection with the names of the policy model. It must not block.
type FlowListener interface{ Flow(*audit.Flow) }
