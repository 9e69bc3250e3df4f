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

// Change describes a connection whose decision differs between two snapshots.
type Change struct {
	// Subject is a name, a wildcard or a range as a statement has it, or an address that now belongs to another
	// subject. It stands for the sources that it covers and no other statement names; "*" stands for all sources that
	// no statement names.
	Subject string
	// Resource is a name, or a wildcard of a statement.
	Resource string
	// Action is an action of the resource's class; "" stands for the ports of no action.
	Action string
	// Cluster is a member in which the decision differs from the base mode; "" stands for the base mode.
	Cluster       string
	Before, After Decision
	// Example is the connection that was decided.
	Example Query
}

// Compare returns the decisions that differ between two snapshots: for every resource that is onboarded or named in
// either, and every source that a statement on it names. The changes are ordered by resource and action.
func Compare(old, new *Snapshot, at time.Time) []Change {
	c := comparison{old: old, new: new, at: at}
	c.moved = movedAddresses(&old.external, &new.external)
	for _, resource := range comparedResources(old, new) {
		c.compare(resource)
	}
	return c.out
}

// comparison runs the same queries on two snapshots.
type comparison struct {
	old, new *Snapshot
	at       time.Time
	// moved are the addresses that belong to other subjects than before, by the subjects before and after.
	moved map[string][]netip.Addr
	out   []Change
}

func (c *comparison) both() [2]*Snapshot { return [2]*Snapshot{c.new, c.old} }

// comparedResources returns the resources whose decisions may differ, and the wildcards that stand for all others.
func comparedResources(old, new *Snapshot) []string {
	names := changedProtections(old, new)
	stems := map[string]bool{} // stems of changed statements
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
		for _, list := range s.index.wildcards {
			for _, w := range list {
				if covered(w.stem) {
					names = append(names, w.stem+"*")
				}
			}
		}
	}
	return sortedUnique(names)
}

// sameSurroundings reports whether a difference can only come from statements and protected resources.
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

// changedStatements returns the statements that only one of two lists contains. The lists are ordered by ref.
func changedStatements(old, new []*statement) []*statement {
	var out []*statement
	for len(old) > 0 && len(new) > 0 {
		switch order := old[0].ref.Compare(new[0].ref); {
		case order < 0:
			out, old = append(out, old[0]), old[1:]
		case order > 0:
			out, new = append(out, new[0]), new[1:]
		default:
			if !old[0].hasSameContent(new[0]) {
				out = append(out, old[0], new[0])
			}
			old, new = old[1:], new[1:]
		}
	}
	return slices.Concat(out, old, new)
}

func (st *statement) hasSameContent(o *statement) bool {
	a, b := st.written, o.written
	return a == b ||
		a.Effect == b.Effect && slices.Equal(a.Subjects, b.Subjects) && slices.Equal(a.Actions, b.Actions) && slices.Equal(a.Resources, b.Resources) &&
			st.notBefore.Equal(o.notBefore) && st.notAfter.Equal(o.notAfter) && st.hours.Equal(o.hours) && st.closed == o.closed
}

// movedAddresses returns the first addresses of the prefixes whose owners differ, by their owners before and after.
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

// compare decides all probes of a resource before and after.
func (c *comparison) compare(resource string) {
	name := resource
	if stem, wild := strings.CutSuffix(resource, "*"); wild {
		name = stem + exampleID
	}
	sources, clusters := c.sources(name), c.clusters(name)
	reported := map[changeKey]bool{}
	for _, p := range c.probes(name) {
		for _, from := range sources {
			base := Change{Subject: from.written, Resource: resource, Action: p.action, Example: from.query}
			base.Example.Resources, base.Example.Protocol, base.Example.Port, base.Example.At = []string{name}, p.protocol, p.port, c.at
			var baseVerdicts [2]Verdict // verdicts in the base mode
			for _, cluster := range clusters {
				ch := base
				ch.Cluster, ch.Example.Cluster = cluster, cluster
				ch.Before, ch.After = c.old.Decide(ch.Example), c.new.Decide(ch.Example)
				verdicts := [2]Verdict{ch.Before.Verdict, ch.After.Verdict}
				if cluster == "" {
					baseVerdicts = verdicts
				} else if verdicts == baseVerdicts {
					continue
				}
				// Ports of one action that change in the same way are reported once.
				key := changeKey{ch.Subject, ch.Action, ch.Cluster, verdicts}
				if verdicts[0] != verdicts[1] && !reported[key] {
					reported[key] = true
					c.out = append(c.out, ch)
				}
			}
		}
	}
}

// changeKey identifies changes of one resource that are equal for a reader.
type changeKey struct {
	subject, action, cluster string
	verdicts                 [2]Verdict
}

// probeSource is a source that represents a subject as written.
type probeSource struct {
	written string
	query   Query
}

// sources returns the sources that statements on the resource name, the addresses that moved to or from them, and any
// other source.
func (c *comparison) sources(resource string) []probeSource {
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
	out := make([]probeSource, 0, len(seen)+len(addresses)+1)
	for p := range seen {
		out = append(out, probeSource{p.String(), p.source()})
	}
	for a := range addresses {
		out = append(out, probeSource{a.String(), Query{Source: a}})
	}
	slices.SortFunc(out, func(a, b probeSource) int { return strings.Compare(a.written, b.written) })
	return append(out, probeSource{written: anyone})
}

// source returns a source that the pattern covers; for a wildcard, one that no statement names.
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

// clusters returns the members in which the resource has its own mode, after "" for the base mode.
func (c *comparison) clusters(resource string) []string {
	own := map[string]bool{"": true}
	for _, s := range c.both() {
		if p := s.protected[resource]; p != nil {
			for _, name := range p.named() {
				own[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(own))
}

// probe is a port to query, as part of an action.
type probe struct {
	action   string
	protocol v1alpha1.Protocol
	port     uint16
}

// probes returns the ports at which an action begins or ends before or after, and one port of no action. It returns
// none for a resource without class, which has no decisions.
func (c *comparison) probes(resource string) []probe {
	var out []probe
	taken := map[uint16]bool{} // TCP only
	free := uint16(1)
	for _, s := range c.both() {
		class, ok := s.resources.of(resource)
		if !ok {
			continue
		}
		for i := range class.actions {
			for _, p := range class.actions[i].ports {
				for _, n := range [2]uint16{uint16(p.Port), uint16(lastPort(p))} { //nolint:gosec // normalPort bounds them
					if a := (probe{class.actions[i].name, p.Protocol, n}); !slices.Contains(out, a) {
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
			return out // all ports are taken
		}
	}
	if len(out) > 0 {
		out = append(out, probe{protocol: v1alpha1.ProtocolTCP, port: free})
	}
	return out
}
