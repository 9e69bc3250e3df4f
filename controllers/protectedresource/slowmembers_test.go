package protectedresource

import (
	"fmt"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestSlowMembers checks which members are taken for slower than the others, and for how long.
func TestSlowMembers(t *testing.T) {
	// states returns the states of n members, of which some are Pending.
	states := func(n int, pending ...int) []v1alpha1.ClusterState {
		out := make([]v1alpha1.ClusterState, n)
		for i := range out {
			out[i] = v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprint("m", i)), State: v1alpha1.MemberRealized}
		}
		for _, i := range pending {
			out[i].State = v1alpha1.MemberPending
		}
		return out
	}
	begin := time.Now()
	for _, c := range []struct {
		reason           string
		recorded, states []v1alpha1.ClusterState
		after            time.Duration
		want             bool
	}{
		{reason: "nobody was recorded", states: states(20, 3)},
		{reason: "the one that was recorded is pending", recorded: states(20, 3), states: states(20, 3), want: true},
		{reason: "it is so in other units, too", recorded: states(20, 3), states: states(10, 3), want: true},
		{reason: "another one is pending", recorded: states(20, 3), states: states(20, 4)},
		{reason: "another one is pending, too", recorded: states(20, 3), states: states(20, 3, 4)},
		{reason: "one of two that were recorded is pending", recorded: states(20, 3, 4), states: states(20, 4), want: true},
		{reason: "nobody is pending", recorded: states(20, 3), states: states(20)},
		{reason: "many were late, so that all are slow", recorded: states(20, 3, 4, 5), states: states(20, 3)},
		{reason: "the fleet is small", recorded: states(9, 3), states: states(9, 3)},
		{reason: "the fleet is small for the unit", recorded: states(20, 3), states: states(9, 3)},
		{reason: "it was recorded long ago", recorded: states(20, 3), states: states(20, 3), after: slowMemory},
	} {
		var s slowMembers
		s.recordPending(c.recorded, begin)
		if got := s.includePending(c.states, begin.Add(c.after)); got != c.want {
			t.Errorf("%s: %v, want %v", c.reason, got, c.want)
		}
	}
}
