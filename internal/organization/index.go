// Package organization decides which teams belong to an organization, and whether its classes and approval policies are within the
// bounds that the security team set. It is pure: it depends on neither people, nor tickets, nor a cluster.
package organization

import (
	"cmp"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Index looks up organizations. The zero value has none. It never changes.
type Index struct {
	byName map[string]*v1alpha1.Organization
	naming map[v1alpha1.TeamName][]string // the organizations that name a team, sorted
}

// NewIndex returns an index of organizations. The objects must not be changed afterwards.
func NewIndex(all []*v1alpha1.Organization) *Index {
	x := &Index{byName: make(map[string]*v1alpha1.Organization, len(all)), naming: map[v1alpha1.TeamName][]string{}}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *v1alpha1.Organization) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range sorted {
		x.byName[o.Name] = o
		for _, team := range o.Spec.Teams {
			x.naming[team] = append(x.naming[team], o.Name)
		}
	}
	return x
}

// Get returns an organization, or nil if there is none with the name.
func (x *Index) Get(name v1alpha1.OrganizationName) *v1alpha1.Organization {
	return x.byName[string(name)]
}

// All returns the organizations, by name.
func (x *Index) All() []*v1alpha1.Organization {
	out := make([]*v1alpha1.Organization, 0, len(x.byName))
	for _, o := range x.byName {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Organization) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Names reports whether an organization names a team, even if other organizations do so, too. Rules that only add to the approvals of a
// request depend on this.
func (x *Index) Names(name v1alpha1.OrganizationName, team string) bool {
	return slices.Contains(x.naming[v1alpha1.TeamName(team)], string(name))
}

// Has reports whether a team belongs to an organization: no other organization names it. Rules that give the organization a right depend
// on this.
func (x *Index) Has(name v1alpha1.OrganizationName, team string) bool {
	naming := x.naming[v1alpha1.TeamName(team)]
	return len(naming) == 1 && naming[0] == string(name)
}

// Acceptance reports whether an organization is accepted, and otherwise which teams other organizations name, too.
func (x *Index) Acceptance(o *v1alpha1.Organization) (bool, message.Message) {
	var teams, others []string
	for _, team := range o.Spec.Teams {
		naming := slices.DeleteFunc(slices.Clone(x.naming[team]), func(name string) bool { return name == o.Name })
		if len(naming) > 0 {
			teams, others = append(teams, string(team)), append(others, naming...)
		}
	}
	if len(teams) == 0 {
		return true, message.Message{}
	}
	slices.Sort(teams)
	slices.Sort(others)
	return false, message.OrganizationTeamConflict(firstOf(teams), firstOf(slices.Compact(others)))
}

// mostListed bounds the names in one message.
const mostListed = 8

func firstOf(names []string) []string { return names[:min(len(names), mostListed)] }
