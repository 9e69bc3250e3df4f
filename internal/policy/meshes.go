package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// CrossMeshLimits describes what a unit cannot express in members that cannot identify the pods of other cluster
// meshes.
type CrossMeshLimits struct {
	// RefusedIn contains, by member, the refusals of statements about subjects whose pods are in another mesh.
	RefusedIn map[string][]Refusal
	// Notes are sentences about what applies in some members only, or more broadly than written.
	Notes []message.Message
	// Denied contains, by member, the ports on which it denies all addresses, because the pods of a denied subject
	// appear as addresses there.
	Denied map[string][]v1alpha1.Port
	// DeniedBy contains, by member, the denies that cause this, sorted.
	DeniedBy map[string][]Ref
}

// Client is a subject of a unit with the label by which members identify it.
type Client struct {
	Name string
	// Key and Value are the label of its pods. The value "" stands for a whole class.
	Key, Value string
	// Addressed reports whether it has addresses in ExternalWorkloads, which every member can match.
	Addressed bool
	// in are the members of other cluster meshes that have its pods.
	in []string
}

// ClientLookup returns the client with a name; false if no class covers the name.
type ClientLookup func(name string) (Client, bool)

// MeshMember is a member with its declared cluster mesh: v1alpha1.NoMesh, a name, or "", the mesh of all members
// without a declaration.
type MeshMember struct{ Name, Mesh string }

// sameMesh reports whether the two members share the identities of their pods.
func (m MeshMember) sameMesh(o MeshMember) bool {
	return m.Name == o.Name || m.Mesh == o.Mesh && m.Mesh != v1alpha1.NoMesh
}

// Meshes contains the labels of pods in each cluster mesh.
type Meshes struct {
	Members []MeshMember
	// Has reports whether a pod of the member has the label, as of the last read, and whether the member was ever read.
	// The value "" matches any pod that has the key.
	Has func(member, key, value string) (has, read bool)
}

// HasSeveral reports whether the members are in more than one mesh, so that some cannot identify the pods of others.
func (m Meshes) HasSeveral() bool {
	return slices.ContainsFunc(m.Members, func(o MeshMember) bool { return !o.sameMesh(m.Members[0]) })
}

// Meshes returns the meshes of the snapshot's fleet, with the labels that the adapter reports.
func (s *Snapshot) Meshes() Meshes {
	m := Meshes{Has: s.hasPods}
	for i := range s.fleet {
		m.Members = append(m.Members, MeshMember{s.fleet[i].Name, s.fleet[i].mesh()})
	}
	return m
}

// hasPods reports whether pods of a member have a label, and whether that is known.
func (s *Snapshot) hasPods(member, key, value string) (has, read bool) {
	c := s.member(member)
	if c == nil || c.Dataplane == nil || !c.Dataplane.ValuesKnown {
		return false, false
	}
	for i := range c.Dataplane.Labels {
		if l := &c.Dataplane.Labels[i]; string(l.Key) == key {
			return value == "" || slices.Contains(l.Values, value), true
		}
	}
	return false, true
}

// member returns the member of the fleet with a name, or nil.
func (s *Snapshot) member(name string) *Cluster {
	i, ok := slices.BinarySearchFunc(s.fleet, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return nil
	}
	return &s.fleet[i]
}

// Member returns the member of the fleet with a name; false if it is not known.
func (s *Snapshot) Member(name string) (Cluster, bool) {
	if c := s.member(name); c != nil {
		return *c, true
	}
	return Cluster{}, false
}

// Fleet returns the members of the snapshot's fleet, by name.
func (s *Snapshot) Fleet() []Cluster { return slices.Clone(s.fleet) }

// Targets returns the known members in which a unit is placed, by name.
func (s *Snapshot) Targets(u *Unit) []string {
	var out []string
	c, _ := s.resources.of(strings.TrimSuffix(u.Resource, "*"))
	for i := range s.fleet {
		if c != nil && c.isPlacedIn(s, s.fleet[i].Name) {
			out = append(out, s.fleet[i].Name)
		}
	}
	return out
}

// CrossMeshLimits returns the limits of a unit of the snapshot in its target members, of which some are in Enforce.
func (s *Snapshot) CrossMeshLimits(u *Unit, m Meshes, targets []string, enforces func(member string) bool, at time.Time) CrossMeshLimits {
	whole := s.WithStatements(*u, at)
	var groups, classes []string
	for i := range u.Rules {
		groups, classes = append(groups, u.Rules[i].External...), append(classes, u.Rules[i].ExternalClasses...)
	}
	groups, classes = sortedUnique(groups), sortedUnique(classes)
	return m.CrossMeshLimits(&whole, targets, enforces, func(name string) (Client, bool) {
		class, ok := s.subjects.of(strings.TrimSuffix(name, "*"))
		if !ok {
			return Client{}, false
		}
		value := strings.TrimPrefix(name, class.stem)
		if strings.HasSuffix(value, "*") {
			value = ""
		}
		client := Client{Name: name, Key: string(class.object.Spec.LabelKey), Value: value}
		if g := s.groups()[name]; g != nil {
			_, named := slices.BinarySearch(groups, g.ID)
			client.Addressed = named || slices.Contains(classes, g.ClassID)
		}
		return client, true
	})
}

// CrossMeshLimits returns the limits of a unit, which must have its Statements, in its target members, of which some
// are in Enforce.
//
// An allow of a subject whose pods are known, but in none of the members' meshes, is refused; if they are in the meshes
// of some members, this is noted. The allow stays in the policies in both cases, where it matches no pod of another
// mesh. A subject without known pods is not refused: the limits are computed again when its pods appear.
//
// A deny of a subject whose pods are known in another mesh would not match them, and another rule may allow their
// addresses. So the member denies all addresses on the ports of the deny, and allows of addresses on these ports are
// refused there. A member that was never read may have such pods and is treated as having them.
func (m Meshes) CrossMeshLimits(u *Unit, targets []string, enforces func(cluster string) bool, client ClientLookup) CrossMeshLimits {
	out := CrossMeshLimits{Denied: map[string][]v1alpha1.Port{}, DeniedBy: map[string][]Ref{}}
	var notes notes
	refused := map[string][]Refusal{}
	for i := range u.Statements {
		st := &u.Statements[i]
		names := slices.Clone(st.Patterns)
		for _, s := range st.Subjects {
			names = append(names, s.Name)
		}
		for _, name := range names {
			c, ok := client(name)
			switch {
			case !ok || c.Addressed:
			case st.Effect == Deny:
				for _, target := range targets {
					if _, there, unread := m.where(target, c.Key, c.Value); len(there)+len(unread) > 0 && enforces(target) {
						out.DeniedBy[target] = append(out.DeniedBy[target], st.Ref)
						for _, a := range st.Actions {
							out.Denied[target] = append(out.Denied[target], a.Ports...)
						}
						notes.add(message.NoteDeniedInOtherMesh(c.Name, someOf(append(there, unread...)), target))
					}
				}
			case c.Value != "":
				without, there := m.without(targets, c.Key, c.Value)
				switch {
				case len(without) == 0:
				case len(without) < len(targets):
					notes.add(message.NoteNoIdentity(c.Name, someOf(without), someOf(there)))
				default:
					for _, target := range targets {
						refused[target] = append(refused[target], refusedMesh(st.Ref, u.Resource, c.Name, there))
					}
				}
			}
		}
	}
	for target := range out.Denied {
		out.Denied[target], out.DeniedBy[target] = JoinPorts(out.Denied[target]), sortedRefs(out.DeniedBy[target])
		for i := range u.Statements {
			if st := &u.Statements[i]; st.Effect == Allow && (st.Anyone || len(st.Ranges) > 0) &&
				slices.ContainsFunc(st.Actions, func(a UnitAction) bool { return PortsOverlap(a.Ports, out.Denied[target]) }) {
				refused[target] = append(refused[target], Refusal{Ref: st.Ref, Reason: v1alpha1.RefusedShadowingDeny, Resource: u.Resource,
					Message: message.RefusalAddressesDenied()})
			}
		}
	}
	if len(refused) > 0 {
		out.RefusedIn = refused
	}
	out.Notes = notes.all()
	return out
}

// refusedMesh returns the refusal of an allow of a subject whose pods are only in members of other cluster meshes.
func refusedMesh(ref Ref, resource, subject string, there []string) Refusal {
	return Refusal{Ref: ref, Reason: v1alpha1.RefusedUnsupported, Resource: resource, Message: message.RefusalOtherMesh(subject, someOf(there))}
}

// unidentifiedSubjects returns the subjects of a query whose pods have no identity in its member, because they are
// known only in other cluster meshes and have no registered addresses; nil if there are none.
func (s *Snapshot) unidentifiedSubjects(q *Query) map[string]Client {
	if !s.several || q.Cluster == "" || q.Identified || q.Source.IsValid() {
		return nil
	}
	var out map[string]Client
	for _, name := range q.Subjects {
		class, ok := s.subjects.of(name)
		if !ok || s.groups()[name] != nil {
			continue
		}
		c := Client{Name: name, Key: string(class.object.Spec.LabelKey), Value: strings.TrimPrefix(name, class.stem)}
		here, there, _ := s.Meshes().where(q.Cluster, c.Key, c.Value)
		if here || len(there) == 0 {
			continue
		}
		if out == nil {
			out = map[string]Client{}
		}
		slices.Sort(there)
		c.in = there
		out[name] = c
	}
	return out
}

// without returns the members in whose meshes no pod has the label, and the members elsewhere whose pods have it.
func (m Meshes) without(targets []string, key, value string) (without, there []string) {
	for _, target := range targets {
		if here, others, _ := m.where(target, key, value); !here && len(others) > 0 {
			without = append(without, target)
			there = append(there, others...)
		}
	}
	slices.Sort(there)
	return without, slices.Compact(there)
}

// notes collects sentences and keeps the first few.
type notes struct {
	texts []message.Message
	more  int
}

func (n *notes) add(text message.Message) {
	const most = 5
	switch {
	case slices.Contains(n.texts, text):
	case len(n.texts) < most:
		n.texts = append(n.texts, text)
	default:
		n.more++
	}
}

func (n *notes) all() []message.Message {
	if n.more == 0 {
		return n.texts
	}
	return append(n.texts, message.NoteMore(n.more))
}

// where reports whether a pod in the member's own mesh has the label, the members of other meshes with such pods, and
// the members of other meshes that were never read.
func (m Meshes) where(target, key, value string) (here bool, there, unread []string) {
	at := slices.IndexFunc(m.Members, func(c MeshMember) bool { return c.Name == target })
	if at < 0 {
		return false, nil, nil
	}
	for _, c := range m.Members {
		has, read := m.Has(c.Name, key, value)
		switch same := c.sameMesh(m.Members[at]); {
		case same:
			here = here || has
		case has:
			there = append(there, c.Name)
		case !read:
			unread = append(unread, c.Name)
		}
	}
	return here, there, unread
}

// someOf lists the first of many names.
func someOf(names []string) message.Message {
	const most = 3
	return message.NamesOf(names, most)
}
