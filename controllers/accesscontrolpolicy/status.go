package accesscontrolpolicy

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// status computes the whole status. It applies to the policy's present generation, because no report is older. It is
// pure.
func status(f *facts) v1alpha1.AccessControlPolicyStatus {
	units := f.relevantReports()
	refused, others := boundRefusals(refusals(f))
	s := v1alpha1.AccessControlPolicyStatus{
		ObservedGeneration: f.Policy.Generation,
		Refused:            refused,
		RefusedOthers:      others,
		UnitsTotal:         int32(min(len(units), 1<<30)),
		Conditions: statusfields.SetConditions(f.Policy.Status.Conditions, f.Policy.Generation, metav1.NewTime(f.Now),
			statusfields.True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, ""), compiled(units, refused, others),
			statusfields.Propagated(units, notOnboarded), statusfields.Realized(units, notOnboarded)),
	}
	for i := range units {
		if units[i].Realized() && len(units[i].Clusters) > 0 {
			s.UnitsRealized++
		}
	}
	room := statusfields.MaxSize - sizeOfRest - statusfields.SizeOfConditions(s.Conditions) - sizeOfSIDs(others)
	for i := range refused {
		room -= sizeOfRefusal(&refused[i])
	}
	s.Units = f.units(units, room)
	return s
}

// sizeOfRest bounds the JSON of a status without conditions, refusals and units.
const sizeOfRest = 300

// relevantReports returns the reports that belong to the status.
func (f *facts) relevantReports() []statuscache.Report {
	var out []statuscache.Report
	for i := range f.Reports {
		if f.isRelevant(&f.Reports[i]) {
			out = append(out, f.Reports[i])
		}
	}
	return out
}

var notOnboarded = statusfields.False("", v1alpha1.ReasonNotOnboarded, message.ConditionNotOnboarded().Text)

// isRelevant reports whether the unit belongs to the status: it contains statements of the policy, or a member may still
// have them, so that a revocation is visible until it is done.
func (f *facts) isRelevant(r *statuscache.Report) bool {
	if len(r.SIDs[f.Policy.Name]) > 0 {
		return true
	}
	if r.Realized() {
		return false
	}
	return slices.Contains(r.FormerPolicies, f.Policy.Name) ||
		slices.ContainsFunc(f.Policy.Status.Units, func(u v1alpha1.PolicyUnit) bool { return string(u.Resource) == r.Resource })
}

func refusals(f *facts) []v1alpha1.RefusedStatement {
	var out []v1alpha1.RefusedStatement
	add := func(all []policy.Refusal) {
		for _, r := range all {
			if r.Ref.Policy == f.Policy.Name {
				out = append(out, statusfields.RefusedStatement(r.Ref.SID, r.Reason, r.Message))
			}
		}
	}
	add(f.Refusals)
	for i := range f.Reports {
		add(f.Reports[i].Refused)
	}
	slices.SortFunc(out, func(a, b v1alpha1.RefusedStatement) int {
		return cmp.Or(cmp.Compare(a.SID, b.SID), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}

func compiled(units []statuscache.Report, refused []v1alpha1.RefusedStatement, others []string) metav1.Condition {
	for i := range units {
		if p := units[i].Problem; p != nil {
			return statusfields.False(v1alpha1.ConditionCompiled, p.Reason, units[i].Resource+": "+p.Message.Text)
		}
	}
	switch {
	case len(others) > 0:
		return statusfields.False(v1alpha1.ConditionCompiled, v1alpha1.ReasonStatementsRefused,
			"statement "+refused[0].SID+": "+refused[0].Message+"; status.refused has more, and status.refusedOthers names those that it has no room for")
	case len(refused) > 0:
		return statusfields.False(v1alpha1.ConditionCompiled, v1alpha1.ReasonStatementsRefused,
			"statement "+refused[0].SID+": "+refused[0].Message+"; status.refused has all of them")
	case len(units) == 0:
		return statusfields.True(v1alpha1.ConditionCompiled, v1alpha1.ReasonNotOnboarded, notOnboarded.Message)
	default:
		return statusfields.True(v1alpha1.ConditionCompiled, v1alpha1.ReasonCompiled, "")
	}
}
