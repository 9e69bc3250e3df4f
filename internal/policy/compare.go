package policy

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Change is a connection that is decided otherwise.
type Change struct {
	// Subject is a name, a wildcard or a range as a statement has it, or an address that acts as another subject. It stands
	// for what it covers and no other statement names; "*" for all that none names.
	Subject string
	// Resource is a name, or a wildcard that a statement has.
	Resource string
	// Action of the resource's class; "": the ports of none.
	Action string
	// Cluster is a member where it is otherwise than in the base mode; "": the base mode.
	Cluster       string
	Before, After Decision
	// Example is the connection that was decided.
	Example Query
}

// Compare lists what is decided otherwise in the newer snapshot: for every resource that is onboarded or named in either,
// and every source that a statement on it names. By resource and action.
func Compare(old, new *Snapshot, at time.Time) []Change {
	c := comparison{old: old, new: new, at: at}
	c.moved = movedAddresses(&old.external, &new.external)
	for _, resource := range comparedResources(old, new) {
		c.compare(resource)
	}
	return c.out
}

// comparison asks two snapshots the same questions.
type comparison struct {
	old, new *Snapshot
	at       time.Time
	// moved are the addresses that act as other subjects, by the subjects before and after.
	moved map[string][]netip.Addr
	out   []Change
}

func (c *comparison) both() [2]*Snapshot { return [2]*Snapshot{c.new, c.old} }

// comparedResources are the resources about which anything may differ, and the wildcards that stand for all others.
func comparedResources(old, new *Snapshot) []string {
	names := changedProtections(old, new)
	stems := map[string]bool{} // of changed statements
	if !sameSurroundings(old, new) {
		stems[""] = true
	}
	for _, st := range changedStatements(old.statements, new.statements) {
		names = append(names, st.exact...)
		for _, stem := range st.wild {
			stems[stem] = true
		}
	}
	covered := func(name string) bool {
		for stem := range stems {
			if strings.HasPrefix(name, stem) {
				return true
			}
		}
		return false
	}
	for _, s := range [2]*Snapshot{old, new} {
		for _, name := range s.index.resources.names {
			if covered(name) {
				names = append(names, name)
			}
		}
		for _, list := range s.index.wild {
			for _, w := range list {
				if covered(w.stem) {
					names = append(names, w.stem+"*")
				}
			}
		}
	}
	return sortedUnique(names)
}

// sameSurroundings tells whether a difference can only come from statements and protected resources.
func sameSurroundings(a, b *Snapshot) bool {
	return slices.EqualFunc(a.resources.all, b.resources.all, func(a, b *resourceClass) bool {
		return a.object == b.object || reflect.DeepEqual(a.object.Spec, b.object.Spec)
	}) && maps.EqualFunc(a.external.owners, b.external.owners, slices.Equal)
}

func changedProtections(old, new *Snapshot) []string {
	var names []string
	for name, p := range new.protected {
		was := old.protected[name]
		if was == nil || !slices.EqualFunc(was.objects, p.objects, func(a, b *v1alpha1.ProtectedResource) bool {
			return a == b || reflect.DeepEqual(a.Spec, b.Spec)
		}) {
			names = append(names, name)
		}
	}
	for name := range old.protected {
		if new.protected[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// changedStatements are those that only one of two lists has, which are by ref.
func changedStatements(old, new []*statement) []*statement {
	var out []*statement
	for len(old) > 0 && len(new) > 0 {
		switch order := compareRefs(old[0].ref, new[0].ref); {
		case order < 0:
			out, old = append(out, old[0]), old[1:]
		case order > 0:
			out, new = append(out, new[0]), new[1:]
		default:
			if !old[0].saysTheSame(new[0]) {
				out = append(out, old[0], new[0])
			}
			old, new = old[1:], new[1:]
		}
	}
	return slices.Concat(out, old, new)
}

func (st *statement) saysTheSame(o *statement) bool {
	a, b := st.written, o.written
	return a == b || a.Effect == b.Effect && slices.Equal(a.Subjects, b.Subjects) && slices.Equal(a.Actions, b.Actions) && slices.Equal(a.Resources, b.Resources) &&
		st.notBefore.Equal(o.notBefore) && st.notAfter.Equal(o.notAfter)
}

// movedAddresses are the first addresses of the prefixes that have other owners afterwards, by their owners before and
// afterwards.
func movedAddresses(old, new *addresses) map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	for _, pair := range [2][2]*addresses{{old, new}, {new, old}} {
		for p, owners := range pair[0].owners {
			if slices.Equal(owners, pair[1].owners[p]) {
				continue
			}
			for _, name := range slices.Concat(owners, pair[1].lookup(p.Addr())) {
				out[name] = append(out[name], p.Addr())
			}
		}
	}
	return out
}

// compare decides everything about a resource before and after.
func (c *comparison) compare(resource string) {
	name := resource
	if stem, wild := strings.CutSuffix(resource, "*"); wild {
		name = stem + exampleID
	}
	sources, clusters := c.sources(name), c.clusters(name)
	told := map[change]bool{}
	for _, p := range c.openings(name) {
		for _, from := range sources {
			base := Change{Subject: from.written, Resource: resource, Action: p.action, Example: from.query}
			base.Example.Resources, base.Example.Protocol, base.Example.Port, base.Example.At = []string{name}, p.protocol, p.port, c.at
			var words [2]Verdict // in the base mode
			for _, cluster := range clusters {
				ch := base
				ch.Cluster, ch.Example.Cluster = cluster, cluster
				ch.Before, ch.After = c.old.Decide(ch.Example), c.new.Decide(ch.Example)
				was := [2]Verdict{ch.Before.Verdict, ch.After.Verdict}
				if cluster == "" {
					words = was
				} else if was == words {
					continue
				}
				// Ports of one action that change alike are told once.
				key := change{ch.Subject, ch.Action, ch.Cluster, was}
				if was[0] != was[1] && !told[key] {
					told[key] = true
					c.out = append(c.out, ch)
				}
			}
		}
	}
}

// change is what makes two changes of one resource the same for a reader.
type change struct {
	subject, action, cluster string
	verdicts                 [2]Verdict
}

// origin is a source that stands for what is written.
type origin struct {
	written string
	query   Query
}

// sources are those that statements on the resource name, the addresses that moved to or from them, and anyone else.
func (c *comparison) sources(resource string) []origin {
	seen := map[pattern]bool{}
	addresses := map[netip.Addr]bool{}
	for _, s := range c.both() {
		for _, n := range s.numbersAbout(resource, func(*statement) bool { return true }) {
			for _, p := range s.statements[n].subjects.patterns() {
				if seen[p] || p.anyone {
					continue
				}
				seen[p] = true
				for owner, moved := range c.moved {
					if p.covers(pattern{text: owner}) {
						for _, a := range moved {
							addresses[a] = true
						}
					}
				}
			}
		}
	}
	out := make([]origin, 0, len(seen)+len(addresses)+1)
	for p := range seen {
		out = append(out, origin{p.String(), p.source()})
	}
	for a := range addresses {
		out = append(out, origin{a.String(), Query{Source: a}})
	}
	slices.SortFunc(out, func(a, b origin) int { return strings.Compare(a.written, b.written) })
	return append(out, origin{written: anyone})
}

// source is one that the pattern covers, of a wildcard one that nothing else names.
func (p pattern) source() Query {
	switch {
	case p.prefix.IsValid():
		return Query{Source: p.prefix.Addr()}
	case p.wild:
		return Query{Subjects: []string{p.text + exampleID}}
	default:
		return Query{Subjects: []string{p.text}}
	}
}

// clusters are the members where the resource has a mode of its own, after "" for the base mode.
func (c *comparison) clusters(resource string) []string {
	own := map[string]bool{"": true}
	for _, s := range c.both() {
		if p := s.protected[resource]; p != nil {
			for _, o := range p.objects {
				for _, m := range o.Spec.ClusterModes {
					own[string(m.Cluster)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(own))
}

// asking is a port to ask about, as part of an action.
type asking struct {
	action   string
	protocol v1alpha1.Protocol
	port     uint16
}

// openings are the ports at which an action begins or ends before or afterwards, and one of no action. There are none for
// a resource without class, about which nothing is decided.
func (c *comparison) openings(resource string) []asking {
	var out []asking
	taken := map[uint16]bool{} // of TCP
	free := uint16(1)
	for _, s := range c.both() {
		class, ok := s.resources.of(resource)
		if !ok {
			continue
		}
		for i := range class.actions {
			for _, p := range class.actions[i].ports {
				for _, n := range [2]uint16{uint16(p.Port), uint16(lastPort(p))} { //nolint:gosec // normalPort bounds them
					if a := (asking{class.actions[i].name, p.Protocol, n}); !slices.Contains(out, a) {
						out = append(out, a)
					}
				}
				if p.Protocol == v1alpha1.ProtocolTCP {
					for n := p.Port; n <= lastPort(p); n++ {
						taken[uint16(n)] = true //nolint:gosec // normalPort bounds them
					}
				}
			}
		}
	}
	for taken[free] {
		if free++; free == 0 {
			return out // all of them
		}
	}
	if len(out) > 0 {
		out = append(out, asking{protocol: v1alpha1.ProtocolTCP, port: free})
	}
	return out
}
