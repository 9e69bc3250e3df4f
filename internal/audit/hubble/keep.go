package hubble

import "github.com/acp-io/acp/internal/audit"

// Keep says which flows are stored one by one, beside the roll-ups that count all of them.
type Keep string

const (
	KeepNone Keep = "none"
	// KeepRefused: those that the dataplane dropped, or that the policies deny.
	KeepRefused Keep = "refused"
	KeepAll     Keep = "all"
)

func (k Keep) keeps(r *ruling) bool { return k == KeepAll || k == KeepRefused && r.refused }

// Tap gets every connection that is counted, in the words of the policy model. It must not block.
type Tap interface{ Flow(*audit.Flow) }
