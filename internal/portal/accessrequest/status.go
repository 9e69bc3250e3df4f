package accessrequest

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// maxMessage is the maximum length of the message of a condition, in characters.
const maxMessage = 1024

// condition returns a condition without its time.
func condition(kind string, status bool, reason string, m message.Message) metav1.Condition {
	text := []rune(m.Text)
	if len(text) > maxMessage {
		text = append(text[:maxMessage-1], '…')
	}
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: string(text)}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// refused returns the conditions of a request that has no ticket.
func refused(reason string, why message.Message) []metav1.Condition {
	return []metav1.Condition{
		condition(v1alpha1.ConditionAccepted, false, reason, why),
		condition(v1alpha1.ConditionApproved, false, reason, why),
		condition(v1alpha1.ConditionRealized, false, reason, why),
	}
}

// unfinished are the states in which an item is not approved, or no longer, in the order in which they count for the whole.
var unfinished = []struct {
	states []approval.State
	reason string
	say    func() message.Message
}{
	{[]approval.State{approval.StateRejected}, v1alpha1.ReasonRejected, message.AccessRequestStateRejected},
	{[]approval.State{approval.StateTimedOut}, v1alpha1.ReasonTimedOut, message.AccessRequestStateTimedOut},
	{[]approval.State{approval.StateWithdrawn}, v1alpha1.ReasonWithdrawn, message.AccessRequestStateWithdrawn},
	{[]approval.State{approval.StatePending}, v1alpha1.ReasonPending, message.AccessRequestStatePending},
	{[]approval.State{approval.StateRevoking, approval.StateRevoked}, v1alpha1.ReasonRevoked, message.AccessRequestStateRevoked},
	{[]approval.State{approval.StateExpired}, v1alpha1.ReasonExpired, message.AccessRequestStateExpired},
}

// conditionsOf returns the conditions of a request with a ticket. Approved and Realized are True only if that holds for every item.
func conditionsOf(t *approval.Ticket) []metav1.Condition {
	out := []metav1.Condition{condition(v1alpha1.ConditionAccepted, true, v1alpha1.ReasonSubmitted, message.AccessRequestSubmitted(t.ID()))}
	has := func(states ...approval.State) bool {
		return slices.ContainsFunc(t.Items, func(it approval.Item) bool { return slices.Contains(states, it.State) })
	}
	for _, u := range unfinished {
		if has(u.states...) {
			return append(out, condition(v1alpha1.ConditionApproved, false, u.reason, u.say()),
				condition(v1alpha1.ConditionRealized, false, u.reason, u.say()))
		}
	}
	out = append(out, condition(v1alpha1.ConditionApproved, true, v1alpha1.ReasonApproved, message.AccessRequestStateApproved()))
	switch {
	case has(approval.StateFailed):
		return append(out, condition(v1alpha1.ConditionRealized, false, v1alpha1.ReasonFailed, message.AccessRequestStateFailed()))
	case len(t.Items) > 0 && effective(t):
		return append(out, condition(v1alpha1.ConditionRealized, true, v1alpha1.ReasonRealized, message.AccessRequestStateRealized()))
	}
	return append(out, condition(v1alpha1.ConditionRealized, false, v1alpha1.ReasonNotRealized, message.AccessRequestStateApplying()))
}

// statusOf returns the status of an object. Nothing of the earlier status is read, except for the times of unchanged conditions.
func statusOf(
	o *v1alpha1.AccessRequest,
	application string,
	t *approval.Ticket,
	url string,
	now time.Time,
	conditions []metav1.Condition,
) v1alpha1.AccessRequestStatus {
	out := v1alpha1.AccessRequestStatus{ObservedGeneration: o.Generation, Application: application}
	if t != nil {
		out.Ticket, out.URL, out.State = t.ID(), url, string(t.State())
	}
	for _, c := range conditions {
		c.ObservedGeneration, c.LastTransitionTime = o.Generation, metav1.NewTime(now.Truncate(time.Second))
		if old := meta.FindStatusCondition(o.Status.Conditions, c.Type); old != nil && old.Status == c.Status && !old.LastTransitionTime.After(now) {
			c.LastTransitionTime = old.LastTransitionTime
		}
		out.Conditions = append(out.Conditions, c)
	}
	return out
}
