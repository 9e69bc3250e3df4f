package insight

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Member is a registered member cluster, with the data that placement depends on.
type Member = policy.Member

// Fleet determines in which members resources are placed. The zero Fleet contains no members; with it, only placements
// that name members explicitly can be resolved.
type Fleet struct {
	// Everywhere, if set, lists the members that serve every resource, regardless of the classes.
	Everywhere []string
	// Members are the registered members. Known reports whether there are no others and their labels are known.
	Members []Member
	Known   bool
}

// FleetOf returns the fleet of the members that the adapter reports. It is not known while there is no report, or while
// the adapter has not read one of them.
func FleetOf(members []*v1alpha1.MemberCluster) Fleet {
	f := Fleet{Known: len(members) > 0}
	for _, m := range members {
		f.Members = append(f.Members, Member{Name: m.Name, Labels: m.Status.Labels, Leaving: m.Status.State == v1alpha1.MemberClusterLeaving})
		f.Known = f.Known && m.Status.State != ""
	}
	return f
}

// PlacedIn returns the members in which a resource is placed, sorted. It returns false if they are not known, because
// no class covers the resource, or because its class selects members by labels and the members are not known.
func (f Fleet) PlacedIn(s *policy.Snapshot, resource string) ([]string, bool) {
	if len(f.Everywhere) > 0 {
		return sortedNames(f.Everywhere), true
	}
	class, ok := s.ResourceClassOf(resource)
	if !ok {
		return nil, false
	}
	return f.Selects(class.Spec.Placement)
}

// Selects returns the members that a placement selects, sorted; false if they are not known.
func (f Fleet) Selects(p v1alpha1.Placement) ([]string, bool) {
	return policy.PlacedIn(&p, f.Members, f.Known)
}

// all returns the members in which any resource may be placed; false if they are not known.
func (f Fleet) all() ([]string, bool) {
	if len(f.Everywhere) > 0 {
		return sortedNames(f.Everywhere), true
	}
	var names []string
	for _, m := range f.Members {
		if !m.Leaving {
			names = append(names, m.Name)
		}
	}
	return sortedNames(names), f.Known
}

// placements collects the placements of several resources.
type placements struct {
	members map[string]bool
	unknown int
}

// addStated adds the placements of the resources that are protected or that a statement names exactly. Resources of one
// class are placed alike.
func (f Fleet) addStated(p *placements, s *policy.Snapshot) {
	classes, covered := s.StatedClasses()
	if len(f.Everywhere) > 0 {
		if len(classes) > 0 || !covered {
			p.add(f.Everywhere, true)
		}
		return
	}
	if !covered {
		p.add(nil, false)
	}
	for _, c := range classes {
		p.add(f.Selects(c.Spec.Placement))
	}
}

func (p *placements) add(names []string, known bool) {
	if !known {
		p.unknown++
	}
	for _, n := range names {
		p.members[n] = true
	}
}

func sortedNames(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

// namedInSentences is the number of members that a sentence lists.
const namedInSentences = 5

// listed returns names for a sentence.
func listed(names []string) message.Message {
	if len(names) <= namedInSentences {
		return message.NamesList(names)
	}
	return message.NamesListAndMore(names[:namedInSentences], len(names)-namedInSentences)
}
