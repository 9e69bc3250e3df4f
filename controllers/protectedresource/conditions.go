package protectedresource

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// accepted returns the condition Accepted: whether the object is used, and whether its deletion is pending.
func accepted(o *v1alpha1.ProtectedResource, problems []policy.Problem) metav1.Condition {
	if o.DeletionTimestamp != nil && o.Spec.RequiresProtection() {
		return statusfields.False(v1alpha1.ConditionAccepted, v1alpha1.ReasonInvalid,
			message.ConditionDeleteFromObserve().Text)
	}
	ok := ""
	if o.DeletionTimestamp != nil {
		ok = message.ConditionBeingRemoved().Text
	}
	return statusfields.Accepted(problems, ok)
}

// compiled returns the condition Compiled: whether every statement became part of the unit, and the unit was written.
func compiled(r *statuscache.Report) metav1.Condition {
	switch {
	case r.Problem != nil:
		return statusfields.False(v1alpha1.ConditionCompiled, r.Problem.Reason, r.Problem.Message.Text)
	case !r.Wanted:
		return statusfields.True(v1alpha1.ConditionCompiled, v1alpha1.ReasonObserve, "")
	case len(r.Refused) > 0:
		names := make([]string, 0, len(r.Refused))
		for _, f := range r.Refused {
			names = append(names, f.Ref.String())
		}
		slices.Sort(names)
		return statusfields.False(v1alpha1.ConditionCompiled, v1alpha1.ReasonStatementsRefused,
			"left out, see the policies' status.refused: "+strings.Join(slices.Compact(names), ", "))
	default:
		return statusfields.True(v1alpha1.ConditionCompiled, v1alpha1.ReasonCompiled, message.Parts(r.Unenforced).Text)
	}
}

// nothing is the condition of propagation and realization while no member must have anything.
var nothing = statusfields.False("", v1alpha1.ReasonObserve, message.ConditionNothingRequired().Text)
