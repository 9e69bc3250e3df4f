package change

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Hide removes from the input the statements about a resource and subjects that a person may not see there.
func Hide(in policy.Input, resource string, sees func(subject string) bool) policy.Input {
	about := func(s v1alpha1.Statement) bool {
		return slices.ContainsFunc(s.Resources, func(r v1alpha1.ResourceName) bool {
			stem, wild := strings.CutSuffix(string(r), "*")
			return string(r) == resource || wild && strings.HasPrefix(resource, stem)
		})
	}
	all := in.Policies
	for i, p := range all {
		if !slices.ContainsFunc(p.Spec.Statements, about) {
			continue
		}
		var kept []v1alpha1.Statement
		for _, s := range p.Spec.Statements {
			if about(s) {
				s.Subjects = slices.DeleteFunc(slices.Clone(s.Subjects), func(x v1alpha1.Subject) bool { return !sees(string(x)) })
			}
			if len(s.Subjects) > 0 {
				kept = append(kept, s)
			}
		}
		less := *p // the other lists are shared
		less.Spec.Statements = kept
		if &all[0] == &in.Policies[0] {
			in.Policies = slices.Clone(all)
		}
		in.Policies[i] = &less
	}
	return in
}
