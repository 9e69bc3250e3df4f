package approval

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Statement returns the statement that an approved item becomes in its policy, for every kind with Kind.Access, until its expiry if it
// has one. Worker writes it.
func Statement(it Item) v1alpha1.Statement {
	if it.Scope != nil {
		return it.Scope.statement(it)
	}
	s := v1alpha1.Statement{
		SID: it.SID, Effect: v1alpha1.EffectAllow,
		Subjects:  []v1alpha1.Subject{v1alpha1.Subject(it.ApplicationName)},
		Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(it.ResourceName)},
	}
	return complete(s, it)
}

// complete adds the actions, the end and the hours of an item to its statement.
func complete(s v1alpha1.Statement, it Item) v1alpha1.Statement {
	for _, a := range it.Actions {
		s.Actions = append(s.Actions, v1alpha1.Action(a))
	}
	if end := it.End(); !end.IsZero() {
		at := metav1.NewTime(end)
		s.NotAfter = &at
	}
	if it.Hours != nil {
		s.Hours = it.Hours.DeepCopy()
	}
	return s
}
