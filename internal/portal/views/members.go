package views

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// MemberCounts returns the counts of the members, with the number of listed ones; nil if there are no members.
func MemberCounts(n v1alpha1.MemberCounts, listed int) *openapi.MemberCounts {
	if n.Total == 0 {
		return nil
	}
	states := map[string]int{}
	for state, count := range map[v1alpha1.MemberState]int32{
		v1alpha1.MemberRealized: n.Realized, v1alpha1.MemberPending: n.Pending, v1alpha1.MemberDrifted: n.Drifted,
		v1alpha1.MemberUnreachable: n.Unreachable, v1alpha1.MemberLeaked: n.Leaked, v1alpha1.MemberOverridden: n.Overridden,
		v1alpha1.MemberQuarantined: n.Quarantined, v1alpha1.MemberDowngraded: n.Downgraded,
	} {
		if count > 0 {
			states[string(state)] = int(count)
		}
	}
	return &openapi.MemberCounts{Total: int(n.Total), Targeted: int(n.Targeted), Waiting: int(n.Waiting), Listed: listed, States: &states}
}

// MemberStates returns the members of a policy's unit. If the policy's status has no room for them, they come from the resource's own
// status, provided that it is about the same revision.
func (d *Data) MemberStates(u *v1alpha1.PolicyUnit) []v1alpha1.ClusterState {
	if u.Unlisted() > 0 {
		if p := d.Host.Protection(string(u.Resource)); p != nil && p.Status.Revision == u.Revision && p.Status.Unlisted() == 0 {
			return p.Status.States()
		}
	}
	return u.States()
}

// ClusterStates returns the views of the states of members.
func ClusterStates(in []v1alpha1.ClusterState) []openapi.ClusterState {
	out := make([]openapi.ClusterState, 0, len(in))
	for _, c := range in {
		x := openapi.ClusterState{
			Cluster:         string(c.Name),
			State:           openapi.ClusterStateState(c.State),
			DesiredRevision: core.Optional(c.DesiredRevision),
			ObservedRevision: core.Optional(
				c.ObservedRevision,
			),
			Propagated: new(c.Propagated),
			Message:    core.OptionalMessage(message.Restore(c.Message, c.MessageCode, c.MessageParams)),
		}
		if c.Mode != "" {
			x.Mode = new(openapi.Mode(c.Mode))
		}
		if c.Since != nil {
			x.Since = new(c.Since.UTC())
		}
		out = append(out, x)
	}
	return out
}
