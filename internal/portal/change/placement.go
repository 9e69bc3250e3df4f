package change

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/policy"
)

// Member contains the properties of a member that determine what is placed in it.
type Member struct {
	Name string
	// Labels are the labels of its KubeFedCluster, by which placements select it.
	Labels map[string]string
	// Leaving reports whether nothing is placed in the member any more.
	Leaving bool
	// WithoutIstio reports whether the member declares that no Istio enforces there, so that it gets no object of Istio's.
	WithoutIstio bool
}

// MembersOf returns the members of the reports, with the properties that determine what is placed in them.
func MembersOf(all []*v1alpha1.MemberCluster) []Member {
	var out []Member
	for _, m := range all {
		out = append(out, Member{Name: m.Name, Labels: m.Status.Labels, Leaving: m.Status.State == v1alpha1.MemberClusterLeaving,
			WithoutIstio: istio.DeclaresNone(m.Status.Istio)})
	}
	return out
}

// registered returns the members in the form that placements use.
func registered(members []Member) []policy.Member {
	out := make([]policy.Member, len(members))
	for i, m := range members {
		out[i] = policy.Member{Name: m.Name, Labels: m.Labels, Leaving: m.Leaving}
	}
	return out
}

// Placed returns the known members in which a placement places a resource, sorted.
func Placed(p v1alpha1.Placement, members []Member) []string {
	names, _ := policy.PlacedIn(&p, registered(members), len(members) > 0)
	return slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(members, func(m Member) bool { return m.Name == name })
	})
}

// placed reports whether a unit is placed in a member. If no member is known, a selector may select any.
func placed(u *policy.Unit, name string, members []Member) bool {
	names, known := policy.PlacedIn(&u.Placement, registered(members), len(members) > 0)
	return known && slices.Contains(names, name) || !known && len(members) == 0
}

// gets reports whether a member gets the objects of an enforcer of a unit.
func gets(name v1alpha1.EnforcerName, u *policy.Unit, member string, members []Member) bool {
	return placed(u, member, members) && !(name == v1alpha1.EnforcerIstio &&
		slices.ContainsFunc(members, func(m Member) bool { return m.Name == member && m.WithoutIstio }))
}

// targets returns the known members that enforce or audit a unit.
func targets(u *policy.Unit, members []Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Name)
	}
	if u.Placement.Clusters != nil {
		for _, c := range *u.Placement.Clusters {
			all = append(all, string(c))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		mode, own := u.ClusterModes[name]
		if !own {
			mode = u.Mode
		}
		return mode == v1alpha1.ModeObserve || !placed(u, name, members)
	})
}
