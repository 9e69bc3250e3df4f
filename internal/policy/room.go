package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
)

// MapEntries is what the policy map of a workload holds by default (Cilium's bpf-policy-map-max).
const MapEntries = 16384

// room is the policy maps of members of one cluster mesh: they hold the identities of the same pods, so a unit needs as many entries
// in each, and the smallest map decides what fits.
type room struct {
	// maps are those of the members that units are placed in, the smallest first; never empty.
	maps []policyMap
	// unreported counts the members of the mesh of which nothing is known, and reported are the others.
	unreported int
	reported   []*v1alpha1.MemberDataplane
}

// policyMap is that of the workloads of one member.
type policyMap struct {
	// member is "" when the members are not known.
	member  string
	entries int
}

// limit is how many entries the rules of a unit may fill: a tenth is left for what other policies need, and for ranges of other
// units that lie within those of this one.
func (m *policyMap) limit() int { return (m.entries - baseEntries) / 10 * 9 }

// fits tells whether rules fit in every map of the room.
func (r *room) fits(entries int) bool { return entries <= r.maps[0].limit() }

// String says how much fits.
func (m *policyMap) String() string {
	text := fmt.Sprintf("%d of %d", m.limit(), m.entries)
	if m.member != "" {
		text += " in " + m.member
	}
	return text
}

func fleetOf(in Input) []Cluster {
	out := slices.Clone(in.Clusters)
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// mesh is what a member declares as its cluster mesh.
func (c *Cluster) mesh() string {
	if c.Dataplane == nil {
		return ""
	}
	return c.Dataplane.Mesh
}

// mapEntries is the size of the policy maps of a member.
func (c *Cluster) mapEntries() int {
	if c.Dataplane == nil {
		return MapEntries
	}
	return int(cmp.Or(c.Dataplane.PolicyMapEntries, MapEntries))
}

// SameRoom tells whether the same fits in both members, and placements select both or none of them.
func SameRoom(a, b Cluster) bool {
	if a.Name != b.Name || !sameLabels(a.Labels, b.Labels) || a.mesh() != b.mesh() || a.mapEntries() != b.mapEntries() || (a.Dataplane == nil) != (b.Dataplane == nil) {
		return false
	}
	return a.Dataplane == b.Dataplane || a.Dataplane.Identities == b.Dataplane.Identities && slices.EqualFunc(a.Dataplane.Labels, b.Dataplane.Labels, func(a, b v1alpha1.MemberLabel) bool {
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

// makeRooms finds out where units of each class have to fit.
func (s *Snapshot) makeRooms() {
	meshes, of := s.meshes()
	everywhere := s.roomsOf(nil, meshes, of)
	for _, c := range s.resources.all {
		c.places = s.placesOf(&c.object.Spec.Placement)
		if c.rooms = everywhere; c.places != nil {
			c.rooms = s.roomsOf(c.places, meshes, of)
		}
	}
	s.wholeFits = make([]bool, len(s.subjects.all))
	for i, c := range s.subjects.all {
		sel := SubjectSelector{LabelKey: string(c.object.Spec.LabelKey), Any: true}
		s.wholeFits[i] = !slices.ContainsFunc(everywhere, func(r room) bool { return !r.fits(s.identitiesSelected(&r, &sel)) })
	}
	s.several = len(meshes) > 1
}

// meshes are rooms without maps, of the pods that the members of each mesh know, and the mesh of each member of the fleet.
func (s *Snapshot) meshes() (meshes []room, of []int) {
	named := map[string]int{}
	for i := range s.fleet {
		c := &s.fleet[i]
		at, ok := named[c.mesh()]
		if !ok || c.mesh() == v1alpha1.NoMesh {
			at, meshes = len(meshes), append(meshes, room{})
			named[c.mesh()] = at
		}
		meshes[at].unreported++
		meshes[at].add(c)
		of = append(of, at)
	}
	return meshes, of
}

// roomsOf are the rooms of the members that a class is placed in, by the first member of each; nil: of all.
func (s *Snapshot) roomsOf(places map[string]struct{}, meshes []room, of []int) []room {
	var out []room
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
	if len(out) == 0 { // no member is known, or none that the class is placed in
		r := room{maps: []policyMap{{entries: MapEntries}}, unreported: s.members}
		for i := range s.fleet {
			r.add(&s.fleet[i])
		}
		out = append(out, r)
	}
	return out
}

// add takes in what is reported of a member that is counted already.
func (r *room) add(c *Cluster) {
	if c.Dataplane != nil && c.Dataplane.Identities > 0 {
		r.unreported--
		r.reported = append(r.reported, c.Dataplane)
	}
}

// atMost bounds how many identities some names have, whatever their label is.
func (r *room) atMost(names int) int {
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

// everyone is how many identities there are. Where that is not reported each known name has one in each member.
func (s *Snapshot) everyone(r *room) int {
	n := len(s.known) * r.unreported
	for _, d := range r.reported {
		n += int(d.Identities)
	}
	return n
}

// identitiesSelected is how many identities a selector selects.
func (s *Snapshot) identitiesSelected(r *room, sel *SubjectSelector) int {
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

// selectedIn bounds how many identities of a member a selector selects. A value that no pod there has counts as one, because pods may
// appear; several values together have no more identities than the label.
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
