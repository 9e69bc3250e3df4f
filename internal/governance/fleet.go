package governance

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/membertally"
	"github.com/acp-io/acp/internal/policy"
)

// Unit is the state of a resource's or a wildcard's unit in one member.
type Unit struct {
	Resource string
	State    v1alpha1.ClusterState
}

// Behind reports whether the wanted revision was not observed in the member.
func (u *Unit) Behind() bool { return behind(&u.State) }

func behind(c *v1alpha1.ClusterState) bool {
	return c.ObservedRevision != c.DesiredRevision || c.State == v1alpha1.MemberPending
}

// UnitsBehind returns, for each member that the status of a unit lists, the number of its units in which the wanted revision was not
// observed. In a fleet whose units list the same members, its time grows with the units, and not with their members.
func UnitsBehind(in policy.Input) map[string]int {
	var tally membertally.Tally
	for _, s := range statuses(in) {
		for c, names := range s.Alike() {
			n := 0
			if behind(&c) {
				n = 1
			}
			tally.Add(names, n)
		}
	}
	return tally.Counts()
}

// UnfinishedUnits returns the units of a member that are not Realized or in which the wanted revision was not observed, sorted by resource.
// listed reports whether the status of any unit lists the member.
func UnfinishedUnits(in policy.Input, member string) (units []Unit, listed bool) {
	for resource, s := range statuses(in) {
		c, ok := s.Member(v1alpha1.ClusterName(member))
		listed = listed || ok
		if ok && (c.State != v1alpha1.MemberRealized || behind(&c)) {
			units = append(units, Unit{resource, c})
		}
	}
	slices.SortStableFunc(units, func(a, b Unit) int { return cmp.Compare(a.Resource, b.Resource) })
	return units, listed
}

// status reads the states of the members from the status of a unit.
type status interface {
	Alike() iter.Seq2[v1alpha1.ClusterState, []v1alpha1.ClusterName]
	In(keep func(v1alpha1.MemberState) bool) iter.Seq[v1alpha1.ClusterState]
	Member(name v1alpha1.ClusterName) (v1alpha1.ClusterState, bool)
}

// statuses returns the resource and the status of each unit.
func statuses(in policy.Input) iter.Seq2[string, status] {
	return func(yield func(string, status) bool) {
		for _, r := range in.Resources {
			if !yield(string(r.Spec.Resource), &r.Status) {
				return
			}
		}
		wild := map[string]bool{}
		for _, p := range in.Policies {
			for i := range p.Status.Units {
				u := &p.Status.Units[i]
				// An exact resource is reported by its ProtectedResource; a wildcard by each policy that names it.
				name := string(u.Resource)
				if !strings.HasSuffix(name, "*") || wild[name] {
					continue
				}
				wild[name] = true
				if !yield(name, u) {
					return
				}
			}
		}
	}
}
