package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestShrink(t *testing.T) {
	in := newGenerator(3).Input()
	in.Policies[0].Spec.Statements = append(in.Policies[0].Spec.Statements, v1alpha1.Statement{SID: "needle",
		Subjects: []v1alpha1.Subject{"*", "a"}, Actions: []v1alpha1.Action{"b", "c"}, Resources: []v1alpha1.ResourceName{"d"}})
	before := len(in.Policies[0].Spec.Statements)
	small := Shrink(&Case{Input: &in}, func(c *Case) bool {
		for _, p := range c.Input.Policies {
			for _, st := range p.Spec.Statements {
				if st.SID == "needle" {
					return true
				}
			}
		}
		return false
	})
	want := []*v1alpha1.AccessControlPolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: "p0"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "needle",
			Subjects: []v1alpha1.Subject{"a"}, Actions: []v1alpha1.Action{"c"}, Resources: []v1alpha1.ResourceName{"d"}}}}},
	}
	if diff := cmp.Diff(want, small.Input.Policies); diff != "" {
		t.Errorf("what does not matter must go: -want +got:\n%s", diff)
	}
	rest := *small.Input
	rest.Policies, rest.ResourceClasses, rest.Members = nil, nil, 0
	if n := len(rest.Resources) + len(rest.Workloads) + len(rest.SubjectClasses) + len(rest.KnownNames); n > 0 {
		t.Errorf("%d other objects are left: %+v", n, rest)
	}
	if after := len(in.Policies[0].Spec.Statements); after != before {
		t.Errorf("shrinking changed what it was given: %d statements, before %d", after, before)
	}
}

func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	if diff := cmp.Diff(newGenerator(7).Input(), newGenerator(7).Input()); diff != "" {
		t.Errorf("a seed must be enough to see a disagreement again:\n%s", diff)
	}
	if cmp.Equal(newGenerator(7).Input(), newGenerator(8).Input()) {
		t.Error("two seeds must not give one world")
	}
}
