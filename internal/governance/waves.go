package governance

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/membertally"
	"github.com/acp-io/acp/internal/policy"
)

// MemberWaves counts the resources whose Enforce is wanted in a member and has not begun there, because it reaches the members in waves.
type MemberWaves struct {
	// Waiting is the number of all of these resources.
	Waiting int
	// Halted is the number of resources whose rollout is halted, so that no further wave begins without an instruction.
	Halted int
}

// WavesByMember returns the members in which resources wait for their wave, of those that the statuses list.
func WavesByMember(in policy.Input, now time.Time) map[string]MemberWaves {
	var waiting, halted membertally.Tally
	var held heldMembers
	for _, o := range in.Resources {
		r := o.Status.Rollout
		if r == nil || r.Progress == nil || o.Spec.TemporaryAudit != nil && now.Before(o.Spec.TemporaryAudit.Until.Time) {
			continue // all members are in temporary audit, also those in which Enforce has begun
		}
		wanted, permitted := o.Spec.Enforces(), r.Permits()
		for _, names := range o.Status.Alike() {
			names := held.of(names, wanted, permitted)
			waiting.Add(names, 1)
			if r.Progress.Halt != nil {
				halted.Add(names, 1)
			}
		}
	}
	out := map[string]MemberWaves{}
	for name, n := range waiting.Counts() {
		out[name] = MemberWaves{Waiting: n}
	}
	for name, n := range halted.Counts() {
		w := out[name]
		w.Halted = n
		out[name] = w
	}
	return out
}

// heldMembers computes in which members of a list Enforce is wanted and not permitted. It keeps the last result, because a change of a
// class starts the rollouts of many resources, which have the same members in the same wave.
type heldMembers struct {
	names             []v1alpha1.ClusterName
	wanted, permitted v1alpha1.MemberSet
	held              []v1alpha1.ClusterName
}

func (h *heldMembers) of(names []v1alpha1.ClusterName, wanted, permitted v1alpha1.MemberSet) []v1alpha1.ClusterName {
	if !slices.Equal(h.names, names) || !h.wanted.Equal(wanted) || !h.permitted.Equal(permitted) {
		*h = heldMembers{names: names, wanted: wanted, permitted: permitted}
		for _, name := range names {
			if wanted.Has(string(name)) && !permitted.Has(string(name)) {
				h.held = append(h.held, name)
			}
		}
	}
	return h.held
}
