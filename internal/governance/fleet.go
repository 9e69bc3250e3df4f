package governance

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Unit is the state of a resource's or a wildcard's unit in one member.
type Unit struct {
	Resource string
	State    *v1alpha1.ClusterState
}

// Behind reports whether the wanted revision was not observed in the member.
func (u *Unit) Behind() bool {
	return u.State.ObservedRevision != u.State.DesiredRevision || u.State.State == v1alpha1.MemberPending
}

// Units returns the units by member, sorted by resource.
func Units(in policy.Input) map[string][]Unit {
	out := map[string][]Unit{}
	add := func(resource string, clusters []v1alpha1.ClusterState) {
		for i := range clusters {
			name := string(clusters[i].Name)
			out[name] = append(out[name], Unit{Resource: resource, State: &clusters[i]})
		}
	}
	for _, r := range in.Resources {
		add(string(r.Spec.Resource), r.Status.States())
	}
	wild := map[string]bool{}
	for _, p := range in.Policies {
		for i := range p.Status.Units {
			u := &p.Status.Units[i]
			// An exact resource is reported by its ProtectedResource; a wildcard by each policy that names it.
			if name := string(u.Resource); strings.HasSuffix(name, "*") && !wild[name] {
				wild[name] = true
				add(name, u.States())
			}
		}
	}
	for _, units := range out {
		slices.SortStableFunc(units, func(a, b Unit) int { return cmp.Compare(a.Resource, b.Resource) })
	}
	return out
}
