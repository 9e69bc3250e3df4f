package protectedresource

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
)

// TestPolicyPriority checks that the policies of a unit of which members have another revision are reported before those whose members were only lost or
// found.
func TestPolicyPriority(t *testing.T) {
	in := func(state v1alpha1.MemberState, desired, observed string) []v1alpha1.ClusterState {
		return []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberRealized, DesiredRevision: "a", ObservedRevision: "a"},
			{Name: "m2", State: state, DesiredRevision: desired, ObservedRevision: observed}}
	}
	realized := in(v1alpha1.MemberRealized, "a", "a")
	for name, c := range map[string]struct {
		before, now []v1alpha1.ClusterState
		want        int
	}{
		"first report":          {nil, realized, requestqueue.Observed},
		"lost":                  {realized, in(v1alpha1.MemberUnreachable, "a", "a"), requestqueue.StatusUpdate},
		"found":                 {in(v1alpha1.MemberUnreachable, "a", "a"), realized, requestqueue.StatusUpdate},
		"new revision":          {realized, in(v1alpha1.MemberPending, "b", "a"), requestqueue.Observed},
		"read back":             {in(v1alpha1.MemberPending, "b", "a"), in(v1alpha1.MemberRealized, "b", "b"), requestqueue.Observed},
		"changed in the member": {realized, in(v1alpha1.MemberDrifted, "a", "c"), requestqueue.Observed},
		"a member less":         {realized, realized[:1], requestqueue.Observed},
		"no members":            {nil, nil, requestqueue.Observed},
	} {
		if got := policyPriority(c.before, c.now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
