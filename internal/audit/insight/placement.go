package insight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Member is a registered member cluster, as far as it decides what is placed there.
type Member = policy.Member

// Fleet tells in which members resources are placed. The zero Fleet does not know any member, so only placements that
// name their members are known.
type Fleet struct {
	// Everywhere, when set, names the members that serve every resource, whatever the classes say.
	Everywhere []string
	// Members are those that are registered; Known tells that there are no others and that their labels are known.
	Members []Member
	Known   bool
}

// FleetOf is the fleet of the members that the adapter reports on. It is not known while there is none, or while the adapter has
// not read one of them.
func FleetOf(members []*v1alpha1.MemberCluster) Fleet {
	f := Fleet{Known: len(members) > 0}
	for _, m := range members {
		f.Members = append(f.Members, Member{Name: m.Name, Labels: m.Status.Labels, Leaving: m.Status.State == v1alpha1.MemberClusterLeaving})
		f.Known = f.Known && m.Status.State != ""
	}
	return f
}

// PlacedIn returns the members in which a resource is placed, sorted; false: not known, because no class covers the
// resource, or because its class selects members by labels and the members are not known.
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

// Selects returns the members that a placement names, sorted; false: not known.
func (f Fleet) Selects(p v1alpha1.Placement) ([]string, bool) {
	return policy.PlacedIn(&p, f.Members, f.Known)
}

// all are the members that any resource may be placed in; false: not known.
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

// placements collects where several resources are placed.
type placements struct {
	members map[string]bool
	unknown int
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

// namedInSentences bounds the members that a sentence names.
const namedInSentences = 5

// listed joins names for a sentence.
func listed(names []string) string {
	if len(names) <= namedInSentences {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedInSentences], ", "), len(names)-namedInSentences)
}
