package federation

import (
	"cmp"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Openings are the policies of Istio in the members that let connections in, of every namespace, whoever wrote them.
type Openings struct{ *fleet[Opening] }

// NewIstioOpenings makes Openings that do nothing until Run. Kind and Revision of the config are not needed.
func NewIstioOpenings(config FleetConfig) (*Openings, error) {
	config.Kind = istioPolicies
	f, err := newFleet(config, parseOpening)
	if err != nil {
		return nil, err
	}
	return &Openings{f}, nil
}

// Observe tells whether the policies can be read in a member. One that does not have the kind has none.
func (o *Openings) Observe(cluster string) Observation {
	seen, _ := o.present(cluster)
	return seen
}

// In are the policies of a member that let somebody in, by what people call them, without those that ours tells, as they were
// last seen.
func (o *Openings) In(cluster string, ours func(Opening) bool) []Opening {
	_, m := o.present(cluster)
	if m == nil {
		return nil
	}
	var out []Opening
	m.watch.each(func(p Opening) {
		if p.Opens() && !ours(p) {
			out = append(out, p)
		}
	})
	slices.SortFunc(out, func(a, b Opening) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// Ours tells whether a policy's Federated object is on the host, so that what it lets in is what policies say.
func (o *Objects) Ours(p Opening) bool {
	found, ok := o.Get(p.Name)
	return ok && p.Kind == o.kind.Target.Kind && p.Namespace == o.kind.Namespace && found.Meta.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
}
