package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// MapEntries is the default size of a workload's policy map (Cilium's bpf-policy-map-max).
const MapEntries = 16384

// meshCapacity describes the policy maps of the members of one cluster mesh. They contain the identities of the same
// pods, so a unit needs the same number of entries in each, and the smallest map determines what fits.
type meshCapacity struct {
	// maps are the maps of the members in which units are placed, the smallest first; never empty.
	maps []policyMap
	// unreported is the number of members of the mesh without a report, and reported contains the reports of the
	// others.
	unreported int
	reported   []*v1alpha1.MemberDataplane
}

// policyMap is the size of the policy maps of the workloads in one member.
type policyMap struct {
	// member is "" if the members are not known.
	member  string
	entries int
}

// limit returns the number of entries that the rules of a unit may fill. A tenth is reserved for other policies, and
// for ranges of other units that lie within ranges of this one.
func (m *policyMap) limit() int { return (m.entries - baseEntries) / 10 * 9 }

// fits reports whether rules with this number of entries fit in every map.
func (r *meshCapacity) fits(entries int) bool { return entries <= r.maps[0].limit() }

// room describes the size of the map.
func (m *policyMap) room() message.Message {
	if m.member != "" {
		return message.MapRoomIn(m.limit(), m.entries, m.member)
	}
	return message.MapRoom(m.limit(), m.entries)
}

func fleetOf(in Input) []Cluster {
	out := slices.Clone(in.Clusters)
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// mesh returns the cluster mesh that a member declares.
func (c *Cluster) mesh() string {
	if c.Dataplane == nil {
		return ""
	}
	return c.Dataplane.Mesh
}

// mapEntries returns the size of the policy maps of a member.
func (c *Cluster) mapEntries() int {
	if c.Dataplane == nil {
		return MapEntries
	}
	return int(cmp.Or(c.Dataplane.PolicyMapEntries, MapEntries))
}

// SameCapacity reports whether the same units fit in both members, and placements select both or neither.
func SameCapacity(a, b Cluster) bool {
	if a.Name != b.Name || !sameLabels(a.Labels, b.Labels) || a.mesh() != b.mesh() || a.mapEntries() != b.mapEntries() ||
		(a.Dataplane == nil) != (b.Dataplane == nil) {
		return false
	}
	return a.Dataplane == b.Dataplane ||
		a.Dataplane.Identities == b.Dataplane.Identities && slices.EqualFunc(a.Dataplane.Labels, b.Dataplane.Labels, func(a, b v1alpha1.MemberLabel) bool {
			return a.Key == b.Key && a.Identities == b.Identities && a.Most == b.Most
		})
}

func sameLabels(a, b map[string]string) bool {
	if (a == nil) != (b == nil) || len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// computeCapacities determines the policy maps into which units of each class have to fit.
func (s *Snapshot) computeCapacities() {
	meshes, of := s.meshes()
	everywhere := s.capacitiesOf(nil, meshes, of)
	for _, c := range s.resources.all {
		c.places = s.placesOf(&c.object.Spec.Placement)
		if c.capacities = everywhere; c.places != nil {
			c.capacities = s.capacitiesOf(c.places, meshes, of)
		}
	}
	s.wholeFits = make([]bool, len(s.subjects.all))
	for i, c := range s.subjects.all {
		sel := SubjectSelector{LabelKey: string(c.object.Spec.LabelKey), Any: true}
		s.wholeFits[i] = !slices.ContainsFunc(everywhere, func(r meshCapacity) bool { return !r.fits(s.identitiesSelected(&r, &sel)) })
	}
	s.several = len(meshes) > 1
}

// meshes returns a capacity without maps for each mesh, with the reports of its members, and the index of the mesh of
// each member of the fleet.
func (s *Snapshot) meshes() (meshes []meshCapacity, of []int) {
	named := map[string]int{}
	for i := range s.fleet {
		c := &s.fleet[i]
		at, ok := named[c.mesh()]
		if !ok || c.mesh() == v1alpha1.NoMesh {
			at, meshes = len(meshes), append(meshes, meshCapacity{})
			named[c.mesh()] = at
		}
		meshes[at].unreported++
		meshes[at].add(c)
		of = append(of, at)
	}
	return meshes, of
}

// capacitiesOf returns the capacities of the members in which a class is placed, one per mesh; nil places mean every
// member.
func (s *Snapshot) capacitiesOf(places map[string]struct{}, meshes []meshCapacity, of []int) []meshCapacity {
	var out []meshCapacity
	rooms := map[int]int{} // by mesh, from 1
	for i := range s.fleet {
		c := &s.fleet[i]
		if _, ok := places[c.Name]; !ok && places != nil {
			continue
		}
		if rooms[of[i]] == 0 {
			out = append(out, meshes[of[i]])
			rooms[of[i]] = len(out)
		}
		r := &out[rooms[of[i]]-1]
		r.maps = append(r.maps, policyMap{c.Name, c.mapEntries()})
	}
	for i := range out {
		slices.SortStableFunc(out[i].maps, func(a, b policyMap) int { return cmp.Compare(a.entries, b.entries) })
	}
	if len(out) == 0 { // no member is known, or the class is placed in no known member
		r := meshCapacity{maps: []policyMap{{entries: MapEntries}}, unreported: s.members}
		for i := range s.fleet {
			r.add(&s.fleet[i])
		}
		out = append(out, r)
	}
	return out
}

// add records the report of a member that is already counted.
func (r *meshCapacity) add(c *Cluster) {
	if c.Dataplane != nil && c.Dataplane.Identities > 0 {
		r.unreported--
		r.reported = append(r.reported, c.Dataplane)
	}
}

// atMost returns an upper bound of the number of identities of some names, for any label.
func (r *meshCapacity) atMost(names int) int {
	n := names * r.unreported
	for _, d := range r.reported {
		most := names
		for i := range d.Labels {
			most = max(most, min(names*int(d.Labels[i].Most), int(d.Labels[i].Identities)))
		}
		n += most
	}
	return n
}

// allIdentities returns the number of identities. For a member without report, each known name counts as one identity.
func (s *Snapshot) allIdentities(r *meshCapacity) int {
	n := len(s.known) * r.unreported
	for _, d := range r.reported {
		n += int(d.Identities)
	}
	return n
}

// identitiesSelected returns the number of identities that a selector selects.
func (s *Snapshot) identitiesSelected(r *meshCapacity, sel *SubjectSelector) int {
	n := 0
	if sel.Any && r.unreported > 0 {
		for _, c := range s.subjects.all {
			if string(c.object.Spec.LabelKey) == sel.LabelKey {
				n += len(s.knownUnder(c.stem)) * r.unreported
			}
		}
	} else {
		n = len(sel.Values) * r.unreported
	}
	for _, d := range r.reported {
		n += selectedIn(d, sel)
	}
	return max(1, n)
}

// selectedIn returns an upper bound of the number of identities of a member that a selector selects. A value that no
// pod there has counts as one, because pods may appear; several values together have no more identities than the label.
func selectedIn(d *v1alpha1.MemberDataplane, sel *SubjectSelector) int {
	all, most := 0, 1
	for i := range d.Labels {
		if l := &d.Labels[i]; string(l.Key) == sel.LabelKey {
			all, most = int(l.Identities), int(l.Most)
			break
		}
	}
	if sel.Any {
		return all
	}
	n := len(sel.Values)
	return max(n, min(n*most, all))
}
