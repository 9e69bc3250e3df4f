package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// delta is what differs between two snapshots, in terms of what units are made from.
type delta struct {
	// parent identifies the older snapshot without keeping it in memory.
	parent *identity
	// all: something that may be in any unit.
	all bool
	// known: the names that prefixes and whole classes stand for.
	known bool
	// statements that only one of the two has, and resources whose protection differs.
	statements []*statement
	protected  []string
}

// identity tells snapshots apart.
type identity struct{ _ byte }

// Changed names the units that may differ between two snapshots, sorted: of resources and of wildcards, whether they are
// still compiled or not. Objects are compared by identity, as Next does; it is quick when the newer snapshot was made by
// Next of the older one. For what time alone changes, see ChangedBetween.
func Changed(old, new *Snapshot) []string {
	d := new.delta
	if d.parent != old.identity {
		d = deltaOf(old, new)
	}
	var names []string
	if d.all {
		return sortedUnique(append(old.unitNames(), new.unitNames()...))
	}
	for _, st := range d.statements {
		names = old.unitsOf(names, st)
		names = new.unitsOf(names, st)
	}
	if d.known {
		names = new.unitsOfBroad(names)
	}
	return sortedUnique(append(names, d.protected...))
}

// ChangedBetween names the units that may differ between two instants, the first excluded, sorted.
func (s *Snapshot) ChangedBetween(from, to time.Time) []string {
	passes := func(t time.Time) bool { return t.After(from) && !t.After(to) }
	var names []string
	for _, st := range s.statements {
		if !passes(st.notBefore) && !passes(st.notAfter) {
			continue
		}
		if st.effect == Deny && st.refused() {
			return sortedUnique(s.unitNames())
		}
		names = s.unitsOf(names, st)
	}
	for name, p := range s.protected {
		for _, o := range p.objects {
			if t := o.Spec.TemporaryAudit; t != nil && passes(t.Until.Time) {
				names = append(names, name)
			}
		}
	}
	return sortedUnique(names)
}

// deltaOf compares all objects.
func deltaOf(old, new *Snapshot) delta {
	d := delta{parent: old.identity, all: !sameClasses(old, new) || old.lacks != new.lacks || old.members != new.members || !slices.Equal(old.workloads, new.workloads),
		known: !slices.Equal(old.known, new.known)}
	for p, list := range new.parsed {
		if was, ok := old.parsed[p]; !ok || len(was) > 0 && len(list) > 0 && was[0] != list[0] {
			d.statements = append(d.statements, list...)
		}
	}
	for p, list := range old.parsed {
		if is, ok := new.parsed[p]; !ok || len(is) > 0 && len(list) > 0 && is[0] != list[0] {
			d.statements = append(d.statements, list...)
		}
	}
	for name, p := range new.protected {
		if was := old.protected[name]; was == nil || !slices.Equal(was.objects, p.objects) {
			d.protected = append(d.protected, name)
		}
	}
	for name := range old.protected {
		if new.protected[name] == nil {
			d.protected = append(d.protected, name)
		}
	}
	// A refused deny reaches the allows of other resources, and which ones depends on what is enforced.
	refuses := func(st *statement) bool { return st.effect == Deny && st.refused() }
	d.all = d.all || slices.ContainsFunc(d.statements, refuses) ||
		len(d.protected) > 0 && len(old.refusedDenies)+len(new.refusedDenies) > 0
	return d
}

func (s *Snapshot) unitNames() []string {
	names := make([]string, 0, len(s.protected)+len(s.wildUnits))
	for r := range s.protected {
		names = append(names, r)
	}
	for w := range s.wildUnits {
		names = append(names, w)
	}
	return names
}

// unitsOf appends the names of the units that hold or inherit a statement.
func (s *Snapshot) unitsOf(names []string, st *statement) []string {
	for _, r := range st.exact {
		if s.protected[r] != nil {
			names = append(names, r)
		}
	}
	for _, stem := range st.wild {
		if st.effect == Allow {
			if n, err := ParseName(stem + "*"); err == nil {
				for _, c := range s.resources.overlapping(n) {
					if name := longer(stem, c.stem) + "*"; s.wildUnits[name] != nil {
						names = append(names, name)
					}
				}
			}
		}
		names = s.protectedUnder(names, stem)
	}
	return names
}

func (s *Snapshot) protectedUnder(names []string, stem string) []string {
	for r := range s.protected {
		if strings.HasPrefix(r, stem) {
			names = append(names, r)
		}
	}
	return names
}

// unitsOfBroad appends the names of the units whose rules or estimates depend on the known names.
func (s *Snapshot) unitsOfBroad(names []string) []string {
	for _, number := range s.index.anySubject {
		names = s.unitsOf(names, s.statements[number])
	}
	for name := range s.wildUnits {
		stem := strings.TrimSuffix(name, "*")
		if c, ok := s.resources.of(stem); ok && len(stem) > len(c.stem) {
			names = s.protectedUnder(append(names, name), stem)
		}
	}
	return names
}

// workloadsOf are the objects by name, for comparing by identity.
func workloadsOf(in Input) []*v1alpha1.ExternalWorkload {
	return sortedObjects(in.Workloads, byName[*v1alpha1.ExternalWorkload])
}
