package statusfields

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
)

func TestDeferralLimit(t *testing.T) {
	conditions := func(accepted, compiled, realized metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: accepted}, {Type: v1alpha1.ConditionCompiled, Status: compiled},
			{Type: v1alpha1.ConditionRealized, Status: realized, Reason: reason}}
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	pending := conditions(yes, yes, no, v1alpha1.ReasonNotRealized)
	realized := conditions(yes, yes, yes, v1alpha1.ReasonRealized)
	members := func(states ...v1alpha1.MemberState) (out []v1alpha1.ClusterState) {
		for _, s := range states {
			out = append(out, v1alpha1.ClusterState{State: s})
		}
		return out
	}
	for _, c := range []struct {
		reason      string
		before, now []metav1.Condition
		members     []v1alpha1.ClusterState
		want        time.Duration
	}{
		{"new, and on its way", nil, pending, members(v1alpha1.MemberPending, v1alpha1.MemberPending), DefaultFirstDelay},
		{"new, and in one member already", nil, pending, members(v1alpha1.MemberRealized, v1alpha1.MemberPending), DefaultFirstDelay},
		{"it was reported already as being propagated", pending, pending, members(v1alpha1.MemberPending), StatusDelay},
		{
			"it was refused until now, which is not so any more",
			conditions(no, yes, no, v1alpha1.ReasonNotRealized), pending, members(v1alpha1.MemberPending), 0,
		},
		{"it was in force, and changes", realized, pending, members(v1alpha1.MemberPending), StatusDelay},
		{"it was in force, and a member drifts", realized, pending, members(v1alpha1.MemberDrifted), 0},
		{"nothing of it was needed until now", conditions(yes, yes, no, v1alpha1.ReasonNotOnboarded), pending, members(v1alpha1.MemberPending), StatusDelay},
		{"it was in force nowhere, and has to be now", conditions(yes, yes, no, v1alpha1.ReasonObserve), pending, members(v1alpha1.MemberPending), 0},
		{"it is in force", nil, realized, members(v1alpha1.MemberRealized), 0},
		{"a member cannot be reached", nil, pending, members(v1alpha1.MemberPending, v1alpha1.MemberUnreachable), 0},
		{"a member has what it should not", pending, pending, members(v1alpha1.MemberLeaked), 0},
		{"it is not accepted", nil, conditions(no, yes, no, v1alpha1.ReasonNotRealized), members(v1alpha1.MemberPending), 0},
		{"something was left out", nil, conditions(yes, no, no, v1alpha1.ReasonNotRealized), members(v1alpha1.MemberPending), 0},
		{"no member is named", nil, conditions(yes, yes, no, v1alpha1.ReasonNoTarget), nil, 0},
		{"new, and nothing of it is needed yet", nil, conditions(yes, yes, no, v1alpha1.ReasonNotOnboarded), nil, StatusDelay},
		{"nothing of it is needed any more", realized, conditions(yes, yes, no, v1alpha1.ReasonNotOnboarded), nil, 0},
		{"nothing is known", nil, nil, nil, 0},
	} {
		r := statuscache.Report{Clusters: c.members}
		p := Progress{Awaited: r.Awaited(), Troubled: r.Troubled(), TroubleShown: func() bool { return ShowsTrouble(nil, c.members) }}
		if got := DeferralLimit(c.before, c.now, p, DefaultFirstDelay); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// TestShowsTrouble checks when a status that is written shows the members that have a problem now.
func TestShowsTrouble(t *testing.T) {
	const pending, realized, away, drifted = v1alpha1.MemberPending, v1alpha1.MemberRealized, v1alpha1.MemberUnreachable, v1alpha1.MemberDrifted
	members := func(states ...v1alpha1.MemberState) (out []v1alpha1.ClusterState) {
		for i, s := range states {
			out = append(out, v1alpha1.ClusterState{Name: []v1alpha1.ClusterName{"a", "b"}[i], State: s})
		}
		return out
	}
	for _, c := range []struct {
		reason     string
		shown, now []v1alpha1.ClusterState
		want       bool
	}{
		{"no member has a problem", members(realized, pending), members(pending, realized), true},
		{"the same member is away", members(realized, away), members(pending, away), true},
		{"a member is away that was not", members(realized, realized), members(realized, away), false},
		{"another member is away", members(away, realized), members(realized, away), false},
		{"a member is no longer away", members(realized, away), members(realized, pending), false},
		{"it has another problem", members(realized, away), members(realized, drifted), false},
		{"it is not a member any more", members(realized, away), members(realized), false},
		{"nothing was written yet", nil, members(away), false},
	} {
		if got := ShowsTrouble(c.shown, c.now); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
