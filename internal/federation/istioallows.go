package federation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
)

// IstioAllows are the AuthorizationPolicies in the members that let connections in, of every namespace and author.
type IstioAllows struct{ *fleet[IstioAllow] }

// NewIstioAllows returns IstioAllows that are idle until Run. The config needs no Kind and Revision.
func NewIstioAllows(config FleetConfig) (*IstioAllows, error) {
	config.Kind = istioPolicies
	f, err := newFleet(config, ParseIstioAllow)
	if err != nil {
		return nil, err
	}
	return &IstioAllows{f}, nil
}

// Observe reports whether the policies can be read in a member. A member that does not serve the kind has none.
func (o *IstioAllows) Observe(cluster string) Observation {
	seen, _ := o.present(cluster)
	return seen
}

// In returns the policies of a member that let connections in, by name, without those for which ours returns true, as
// last seen.
func (o *IstioAllows) In(cluster string, ours func(IstioAllow) bool) []IstioAllow {
	_, m := o.present(cluster)
	if m == nil {
		return nil
	}
	var out []IstioAllow
	m.watch.each(func(p IstioAllow) {
		if p.Opens() && !ours(p) {
			out = append(out, p)
		}
	})
	slices.SortFunc(out, func(a, b IstioAllow) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// IsOwn reports whether the policy's Federated object is on the host and selects the same pods, so that ACP's policies account for what
// it lets in. A policy that selects other pods is one of others, although it has a name of ACP.
func (o *Objects) IsOwn(p IstioAllow) bool {
	found, ok := o.Get(p.Name)
	return ok && p.Kind == o.kind.Target.Kind && p.Namespace == o.kind.Namespace && found.Meta.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy &&
		found.isOf(&p)
}

// isOf reports whether the object applies, in some member, to the same pods or waypoints as a policy.
func (o *Object) isOf(p *IstioAllow) bool {
	is := func(spec map[string]any) bool {
		if len(p.gateways) > 0 {
			return slices.Equal(p.gateways, p.waypointsOf(targetsOf(spec)))
		}
		return selectsByLabels(spec, p.labels)
	}
	for _, own := range o.Overrides {
		if own.Spec != nil && is(own.Spec) {
			return true
		}
	}
	return is(o.TemplateSpec)
}

// selectsByLabels reports whether a policy selects exactly the pods with some labels.
func selectsByLabels(spec map[string]any, labels []Label) bool {
	selector, ok, err := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	return ok && err == nil && len(selector) == len(labels) &&
		!slices.ContainsFunc(labels, func(l Label) bool { v, has := selector[l.Key]; return !has || v != l.Value })
}
