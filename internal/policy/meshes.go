package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Apart is what cannot be expressed of a unit in members that do not know the pods of other cluster meshes by name.
type Apart struct {
	// RefusedIn are statements about subjects whose pods are in another mesh, by member.
	RefusedIn map[string][]Refusal
	// Notes are sentences about what holds in some members only, or more broadly than it is written.
	Notes []string
	// Denied are the ports on which a member has to deny all addresses, because a denied subject comes as one of them.
	Denied map[string][]v1alpha1.Port
	// DeniedBy are the denies because of which a member does so, sorted.
	DeniedBy map[string][]Ref
}

// Client is a subject of a unit as members know it.
type Client struct {
	Name string
	// Key and Value are the label of its pods. With the value "" it stands for a whole class.
	Key, Value string
	// Addressed tells that it has addresses by ExternalWorkloads, which every member knows.
	Addressed bool
}

// Clients looks a name of a statement up; false: no class covers it.
type Clients func(name string) (Client, bool)

// Meshed is a member with the cluster mesh that it declares: v1alpha1.NoMesh, a name, or "", which is the mesh of all members that
// declare nothing.
type Meshed struct{ Name, Mesh string }

// sameMesh reports whether either member knows the identities of the other's pods.
func (m Meshed) sameMesh(o Meshed) bool {
	return m.Name == o.Name || m.Mesh == o.Mesh && m.Mesh != v1alpha1.NoMesh
}

// Meshes tells which labels pods have in each cluster mesh.
type Meshes struct {
	Members []Meshed
	// Has reports whether a pod of the member has the label, as far as the member was ever read, and whether it was. The value "" asks
	// for any pod that has the key.
	Has func(member, key, value string) (has, read bool)
}

// Several reports whether the members are in more than one mesh, so that some do not know the pods of others.
func (m Meshes) Several() bool {
	return slices.ContainsFunc(m.Members, func(o Meshed) bool { return !o.sameMesh(m.Members[0]) })
}

// Meshes are those of the fleet that the snapshot was made for, as far as the adapter reports which names pods have.
func (s *Snapshot) Meshes() Meshes {
	m := Meshes{Has: s.hasPods}
	for i := range s.fleet {
		m.Members = append(m.Members, Meshed{s.fleet[i].Name, s.fleet[i].mesh()})
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

// member of the fleet by name, or nil.
func (s *Snapshot) member(name string) *Cluster {
	i, ok := slices.BinarySearchFunc(s.fleet, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return nil
	}
	return &s.fleet[i]
}

// Member is a member of the fleet that the snapshot was made for; false: it is not known.
func (s *Snapshot) Member(name string) (Cluster, bool) {
	if c := s.member(name); c != nil {
		return *c, true
	}
	return Cluster{}, false
}

// Fleet are the members that the snapshot was made for, by name.
func (s *Snapshot) Fleet() []Cluster { return slices.Clone(s.fleet) }

// Targets are the known members in which a unit is placed, by name.
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

// Apart judges a unit of the snapshot for the members that it goes to, of which some are in Enforce.
func (s *Snapshot) Apart(u *Unit, m Meshes, targets []string, enforces func(member string) bool, at time.Time) Apart {
	whole := s.WithStatements(*u, at)
	var groups, classes []string
	for i := range u.Rules {
		groups, classes = append(groups, u.Rules[i].External...), append(classes, u.Rules[i].ExternalClasses...)
	}
	groups, classes = sortedUnique(groups), sortedUnique(classes)
	return m.Apart(&whole, targets, enforces, func(name string) (Client, bool) {
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

// Apart judges a unit, which has its Statements, for the members that it goes to, of which some are in Enforce.
//
// An allow of a subject whose pods are known, and in none of the members' meshes, is refused; where they are in the meshes of some,
// that is noted. Either way it stays in the policies, where it meets no pod of another mesh. A subject that is known nowhere is not
// refused: wherever its pods appear, they are looked for again.
//
// A deny of a subject whose pods are known in another mesh would not meet them, and something else may let their addresses in. So
// the member denies all addresses the deny's ports, and allows of addresses on these ports are refused there. A member that was
// never read may have such pods, so it counts as having them.
func (m Meshes) Apart(u *Unit, targets []string, enforces func(cluster string) bool, client Clients) Apart {
	out := Apart{Denied: map[string][]v1alpha1.Port{}, DeniedBy: map[string][]Ref{}}
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
						notes.add(fmt.Sprintf("%s, which is denied, has or may have pods in %s, of another cluster mesh than %s, so all addresses are denied the same ports there", c.Name, someOf(append(there, unread...)), target))
					}
				}
			case c.Value != "":
				without, there := m.without(targets, c.Key, c.Value)
				switch {
				case len(without) == 0:
				case len(without) < len(targets):
					notes.add(fmt.Sprintf("%s has no pods in the cluster mesh of %s, and those in %s have no identity there", c.Name, someOf(without), someOf(there)))
				default:
					for _, target := range targets {
						refused[target] = append(refused[target], Refusal{Ref: st.Ref, Reason: v1alpha1.RefusedUnsupported, Resource: u.Resource, Message: fmt.Sprintf(
							"%s has pods in %s only, which is in another cluster mesh, so they have no identity where the resource is: register the addresses that they come from as ExternalWorkloads", c.Name, someOf(there))})
					}
				}
			}
		}
	}
	for target := range out.Denied {
		out.Denied[target], out.DeniedBy[target] = JoinPorts(out.Denied[target]), sortedRefs(out.DeniedBy[target])
		for i := range u.Statements {
			if st := &u.Statements[i]; st.Effect == Allow && (st.Anyone || len(st.Ranges) > 0) && slices.ContainsFunc(st.Actions, func(a UnitAction) bool { return PortsOverlap(a.Ports, out.Denied[target]) }) {
				refused[target] = append(refused[target], Refusal{Ref: st.Ref, Reason: v1alpha1.RefusedShadowingDeny, Resource: u.Resource,
					Message: "a denied subject has or may have pods in another cluster mesh, which come as addresses, so all addresses are denied these ports: register the addresses that the denied subject comes from as ExternalWorkloads"})
			}
		}
	}
	if len(refused) > 0 {
		out.RefusedIn = refused
	}
	out.Notes = notes.all()
	return out
}

// without are the members in whose meshes no pod has the label, if pods elsewhere have it, and these others.
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

// notes are sentences of which a few are told.
type notes struct {
	texts []string
	more  int
}

func (n *notes) add(text string) {
	const most = 5
	switch {
	case slices.Contains(n.texts, text):
	case len(n.texts) < most:
		n.texts = append(n.texts, text)
	default:
		n.more++
	}
}

func (n *notes) all() []string {
	if n.more == 0 {
		return n.texts
	}
	return append(n.texts, fmt.Sprintf("the same holds for %d more subjects and members", n.more))
}

// where are pods with the label: in the member's own mesh, in members of others, and in members of others that nobody has read.
func (m Meshes) where(target, key, value string) (here bool, there, unread []string) {
	at := slices.IndexFunc(m.Members, func(c Meshed) bool { return c.Name == target })
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

// someOf names some of many.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
