package membercluster

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestCollect checks the metrics of the leader.
func TestCollect(t *testing.T) {
	w := &Writer{}
	if n := testutil.CollectAndCount(w); n != 0 {
		t.Errorf("a replica that is not the leader has %d metrics", n)
	}
	w.latest = map[string]latest{
		"m1": {States: map[v1alpha1.MemberState]int{v1alpha1.MemberRealized: 7, v1alpha1.MemberLeaked: 1}, Status: v1alpha1.MemberClusterStatus{
			State:    v1alpha1.MemberClusterReady,
			Guard:    v1alpha1.GuardMissing,
			Findings: []v1alpha1.MemberFinding{{Severity: v1alpha1.FindingWarns}, {Severity: v1alpha1.FindingWarns}},
			Identities: &v1alpha1.MemberIdentities{
				Used:   5,
				Limit:  10,
				Labels: []v1alpha1.IdentityLabel{{Key: "app", Values: 4}},
			},
			PolicyMap: &v1alpha1.MemberPolicyMap{Highest: 3, Limit: 9},
		}},
		"m2": {Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterUnreachable}},
	}
	const want = `
# HELP acp_member_state 1 for the state that a member is in, as in its MemberCluster.
# TYPE acp_member_state gauge
acp_member_state{cluster="m1",state="Downgraded"} 0
acp_member_state{cluster="m1",state="Leaving"} 0
acp_member_state{cluster="m1",state="Quarantined"} 0
acp_member_state{cluster="m1",state="Ready"} 1
acp_member_state{cluster="m1",state="Unreachable"} 0
acp_member_state{cluster="m2",state="Downgraded"} 0
acp_member_state{cluster="m2",state="Leaving"} 0
acp_member_state{cluster="m2",state="Quarantined"} 0
acp_member_state{cluster="m2",state="Ready"} 0
acp_member_state{cluster="m2",state="Unreachable"} 1
# HELP acp_leaked Units that are in a member though they should not be.
# TYPE acp_leaked gauge
acp_leaked{cluster="m1"} 1
# HELP acp_units Units that a member has to have, has, or may have, by state.
# TYPE acp_units gauge
acp_units{cluster="m1",state="Downgraded"} 0
acp_units{cluster="m1",state="Drifted"} 0
acp_units{cluster="m1",state="Leaked"} 1
acp_units{cluster="m1",state="Overridden"} 0
acp_units{cluster="m1",state="Pending"} 0
acp_units{cluster="m1",state="Quarantined"} 0
acp_units{cluster="m1",state="Realized"} 7
acp_units{cluster="m1",state="Unreachable"} 0
# HELP acp_identity_label_values Values of the label keys with the most values in a member's identities.
# TYPE acp_identity_label_values gauge
acp_identity_label_values{cluster="m1",key="app"} 4
`
	if err := testutil.CollectAndCompare(w, strings.NewReader(want), "acp_member_state", "acp_leaked", "acp_units", "acp_identity_label_values"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(w); err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
