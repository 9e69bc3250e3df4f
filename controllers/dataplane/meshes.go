package dataplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Apart is what cannot be expressed of a unit in members that do not know the pods of other cluster meshes by name.
type Apart struct {
	// Refused are statements about subjects whose pods are in another mesh.
	Refused []policy.Refusal
	// Notes are sentences about what holds in some members only, or more broadly than it is written.
	Notes []string
	// Denied are the ports on which a member has to deny all addresses, because a denied subject comes as one of them.
	Denied map[string][]v1alpha1.Port
}

// Client is a subject of a unit as members know it.
type Client struct {
	Name string
	// Label of its pods. With the value "" it stands for a whole class.
	Label federation.Label
	// Addressed: it has addresses by ExternalWorkloads, which every member knows.
	Addressed bool
}

// Clients looks a name of a statement up; false: no class covers it.
type Clients func(name string) (Client, bool)

// Meshes tells which labels pods have in each cluster mesh.
type Meshes struct {
	Clusters []federation.Cluster
	// Has reports whether a pod of the member has the label, as far as the member was ever read, and whether it was.
	Has func(cluster string, l federation.Label) (has, read bool)
}

// Several reports whether the members are in more than one mesh, so that some do not know the pods of others.
func Several(clusters []federation.Cluster) bool {
	return slices.ContainsFunc(clusters, func(c federation.Cluster) bool { return !c.SameMesh(clusters[0]) })
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
func (m Meshes) Apart(u *policy.Unit, targets []string, enforces func(cluster string) bool, client Clients) Apart {
	out := Apart{Denied: map[string][]v1alpha1.Port{}}
	var notes notes
	refused := map[string][]policy.Refusal{}
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
			case st.Effect == policy.Deny:
				for _, target := range targets {
					if _, there, unread := m.where(target, c.Label); len(there)+len(unread) > 0 && enforces(target) {
						for _, a := range st.Actions {
							out.Denied[target] = append(out.Denied[target], a.Ports...)
						}
						notes.add(fmt.Sprintf("%s, which is denied, has or may have pods in %s, of another cluster mesh than %s, so all addresses are denied the same ports there", c.Name, several(append(there, unread...)), target))
					}
				}
			case c.Label.Value != "":
				without, there := m.without(targets, c.Label)
				switch {
				case len(without) == 0:
				case len(without) < len(targets):
					notes.add(fmt.Sprintf("%s has no pods in the cluster mesh of %s, and those in %s have no identity there", c.Name, several(without), several(there)))
				default:
					for _, target := range targets {
						refused[target] = append(refused[target], policy.Refusal{Ref: st.Ref, Reason: v1alpha1.RefusedUnsupported, Resource: u.Resource, Message: fmt.Sprintf(
							"%s has pods in %s only, which is in another cluster mesh, so they have no identity where the resource is: register the addresses that they come from as ExternalWorkloads", c.Name, several(there))})
					}
				}
			}
		}
	}
	for target := range out.Denied {
		out.Denied[target] = policy.JoinPorts(out.Denied[target])
		for i := range u.Statements {
			if st := &u.Statements[i]; st.Effect == policy.Allow && (st.Anyone || len(st.Ranges) > 0) && slices.ContainsFunc(st.Actions, func(a policy.UnitAction) bool { return policy.PortsOverlap(a.Ports, out.Denied[target]) }) {
				refused[target] = append(refused[target], policy.Refusal{Ref: st.Ref, Reason: v1alpha1.RefusedShadowingDeny, Resource: u.Resource,
					Message: "a denied subject has or may have pods in another cluster mesh, which come as addresses, so all addresses are denied these ports: register the addresses that the denied subject comes from as ExternalWorkloads"})
			}
		}
	}
	r := enforcer.Rendering{RefusedIn: refused}
	if len(refused) > 0 {
		out.Refused = r.RefusedAmong(targets)
	}
	out.Notes = notes.all()
	return out
}

// without are the members in whose meshes no pod has the label, if pods elsewhere have it, and these others.
func (m Meshes) without(targets []string, l federation.Label) (without, there []string) {
	for _, target := range targets {
		if here, others, _ := m.where(target, l); !here && len(others) > 0 {
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
func (m Meshes) where(target string, l federation.Label) (here bool, there, unread []string) {
	at := slices.IndexFunc(m.Clusters, func(c federation.Cluster) bool { return c.Name == target })
	if at < 0 {
		return false, nil, nil
	}
	for _, c := range m.Clusters {
		has, read := m.Has(c.Name, l)
		switch same := c.SameMesh(m.Clusters[at]); {
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

// several names some of many.
func several(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
