package statusfields

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// DefaultFirstDelay bounds how long the first status of an object may be deferred.
	DefaultFirstDelay = 5 * time.Second
	// StatusDelay bounds how long a status may show the previous state, in addition to the time of the decision.
	// Clients that need to know compare observedGeneration.
	StatusDelay = 500 * time.Millisecond
)

// Progress is what a new status shows of the members beside its conditions.
type Progress struct {
	// Awaited reports whether a member has yet to get the present version, and is not known to be slower than the others.
	Awaited bool
	// Troubled reports whether a member is in a state other than Pending and Realized.
	Troubled bool
	// TroubleShown reports whether the written status shows exactly these members in the same states. It is called only if that decides.
	TroubleShown func() bool
}

// DeferralLimit returns how long a status write may be deferred because it only shows that members do not have
// everything yet; 0 if it shows more. Usually this state lasts 50 ms, so that an immediate write would cause a second
// one, and take capacity of the host that the push itself needs: with 100 members, each of them would cause a write.
// A member that is away, or slower than the others, changes nothing about that: once all others have everything, the status is
// written. The delay protects the host and is unrelated to policies, so the machine's clock is used. first applies if there was no
// status before, which cannot mislead anybody. before and now are the conditions of the written and of the new status, which differ.
func DeferralLimit(before, now []metav1.Condition, p Progress, first time.Duration) time.Duration {
	switch {
	case len(before) == 0 && showsNothing(now):
		return StatusDelay // a policy is often created shortly before its resource is protected
	case !showsProgress(now):
		return 0
	case len(before) == 0 && p.Troubled:
		return 0
	case len(before) == 0:
		return first
	case !p.Awaited:
		return 0
	case isHealthy(before) || showsNothing(before) || showsProgress(before):
		if p.TroubleShown() {
			return StatusDelay
		}
	}
	return 0 // the previous status showed a problem, which may be over, or the new one shows another
}

// showsProgress reports whether conditions show that members do not have everything yet, and no problem that concerns all of them.
func showsProgress(conditions []metav1.Condition) bool {
	realized := meta.FindStatusCondition(conditions, v1alpha1.ConditionRealized)
	return realized != nil && realized.Status != metav1.ConditionTrue && realized.Reason == v1alpha1.ReasonNotRealized && areUsable(conditions)
}

// isHealthy reports whether a status shows no problem.
func isHealthy(conditions []metav1.Condition) bool {
	return areUsable(conditions) && meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionRealized)
}

// showsNothing reports whether a policy's status shows that no member needs anything of it, as after its last statement was revoked.
func showsNothing(conditions []metav1.Condition) bool {
	realized := meta.FindStatusCondition(conditions, v1alpha1.ConditionRealized)
	return realized != nil && realized.Reason == v1alpha1.ReasonNotOnboarded && areUsable(conditions)
}

// areUsable reports whether an object was accepted and compiled.
func areUsable(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionAccepted) && meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionCompiled)
}

// ShowsTrouble reports whether a status shows exactly those members that are neither Pending nor Realized now, in the same states.
func ShowsTrouble(shown, now []v1alpha1.ClusterState) bool {
	states := map[v1alpha1.ClusterName]v1alpha1.MemberState{}
	for i := range shown {
		if shown[i].Troubled() {
			states[shown[i].Name] = shown[i].State
		}
	}
	for i := range now {
		if !now[i].Troubled() {
			continue
		}
		if states[now[i].Name] != now[i].State {
			return false
		}
		delete(states, now[i].Name)
	}
	return len(states) == 0
}
