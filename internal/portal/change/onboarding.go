package change

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// Onboarding returns the mode in which the portal onboards a resource with its first statement, that of the sid: the default mode
// of its class. It is empty when the resource is onboarded already, when another statement names it exactly, or when the class
// has no default mode. The snapshot has all statements, also those that a reader of the preview may not see.
func Onboarding(s *policy.Snapshot, resources []*v1alpha1.ProtectedResource, resource, sid string) v1alpha1.Mode {
	c, ok := s.ResourceClassOf(resource)
	if !ok || c.Spec.DefaultMode == "" ||
		slices.ContainsFunc(resources, func(p *v1alpha1.ProtectedResource) bool { return string(p.Spec.Resource) == resource }) {
		return ""
	}
	if slices.ContainsFunc(s.StatementsAbout(resource), func(w policy.PolicyStatement) bool { return NamedBeside(w.Ref.Policy, w.Statement, resource, sid) }) {
		return ""
	}
	return c.Spec.DefaultMode
}

// NamedBeside reports whether a statement of a policy names the resource exactly, and is not the portal's own one of the sid.
func NamedBeside(name string, s *v1alpha1.Statement, resource, sid string) bool {
	base, _ := policy.SplitPolicyShard(name)
	own := s.SID == sid && base == policy.PolicyNameFor(resource)
	return !own && slices.Contains(s.Resources, v1alpha1.ResourceName(resource))
}

// onboard adds the resource of a granted item to the input as the portal does when it writes the statement.
func onboard(base *policy.Snapshot, in *policy.Input, it approval.Item, sid string) {
	mode := Onboarding(base, in.Resources, it.ResourceName, sid)
	if mode == "" {
		return
	}
	in.Resources = append(slices.Clip(in.Resources), &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(it.ResourceName)},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(it.ResourceName), Mode: mode}})
}

// onboarded returns the resources that grants onboard.
func onboarded(before, after []*v1alpha1.ProtectedResource) []Object {
	var out []Object
	for _, p := range after[min(len(before), len(after)):] {
		out = append(out, Object{Layer: LayerACP, Kind: "ProtectedResource", Name: p.Name, After: text(p.Spec)})
	}
	return out
}
