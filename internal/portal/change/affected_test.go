package change

import (
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// TestAffected checks which changes of a class affect its resources: one that is onboarded with a grant, and one in Observe.
func TestAffected(t *testing.T) {
	in := input()
	in.Policies = []*v1alpha1.AccessControlPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(grant("a"))}},
	}}
	in.Resources = append(in.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "observed"},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: "trnv1:rsc:trip-com:redis:clusters:observed", Mode: v1alpha1.ModeObserve}})
	base := policy.NewSnapshot(in)
	raw := func(spec any) json.RawMessage {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	class := func(edit func(*v1alpha1.ResourceClassSpec)) approval.Change {
		before := in.ResourceClasses[0].Spec
		after := *before.DeepCopy()
		edit(&after)
		return approval.Change{Kind: approval.ObjectResourceClass, Name: "redis", Verb: approval.VerbUpdate, Before: raw(before), After: raw(after)}
	}
	subjects := func(key v1alpha1.LabelKey) approval.Change {
		before := in.SubjectClasses[0].Spec
		after := before
		after.LabelKey = key
		return approval.Change{Kind: approval.ObjectSubjectClass, Name: "application", Verb: approval.VerbUpdate, Before: raw(before), After: raw(after)}
	}
	onboarded := []string{redis}
	for _, tc := range []struct {
		reason string
		change approval.Change
		want   []string
	}{
		{"nothing changes", class(func(*v1alpha1.ResourceClassSpec) {}), nil},
		{"a further port", class(func(s *v1alpha1.ResourceClassSpec) {
			s.Actions[0].Ports = append(s.Actions[0].Ports, v1alpha1.Port{Port: 6380, Protocol: "TCP"})
		}), onboarded},
		{"an action that no statement has", class(func(s *v1alpha1.ResourceClassSpec) {
			s.Actions = append(s.Actions, v1alpha1.ClassAction{Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 7000, Protocol: "TCP"}}})
		}), nil},
		{"fewer members", class(func(s *v1alpha1.ResourceClassSpec) {
			s.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}
		}), onboarded},
		{"another enforcer", class(func(s *v1alpha1.ResourceClassSpec) { s.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio} }), onboarded},
		{"waves", class(func(s *v1alpha1.ResourceClassSpec) {
			s.Rollout = &v1alpha1.ClassRollout{Waves: []v1alpha1.Wave{{Name: "all"}}}
		}), nil},
		{"the label of the applications", subjects("other"), onboarded},
		{"the same label", subjects(in.SubjectClasses[0].Spec.LabelKey), nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := Affected(base, in, tc.change, at); !slices.Equal(got, tc.want) {
				t.Errorf("affected are %v, want %v", got, tc.want)
			}
		})
	}
}
