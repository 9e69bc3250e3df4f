package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// delta is the difference between two snapshots, in terms of the inputs of units.
type delta struct {
	// parent identifies the older snapshot without keeping it in memory.
	parent *identity
	// all reports whether any unit may differ.
	all bool
	// known contains the names that prefixes and whole classes stand for in only one of the two snapshots.
	known []string
	// statements contains the statements that only one of the two snapshots has. protected
	// contains the resources whose protection differs.
	statements []*statement
	protected  []string
}

// identity distinguishes snapshots by its address.
type identity struct{ _ byte }

// ChangedUnits returns the names of the units that may differ between two snapshots, sorted: of resources and of
// wildcards, whether or not they are still compiled. Objects are compared by identity, as in Next. The call is fast if
// the newer snapshot was made by Next of the older one. For changes by time alone see ChangedUnitsBetween.
func ChangedUnits(old, new *Snapshot) []string {
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
	if len(d.known) > 0 {
		names = new.unitsOfBroad(names, d.known)
	}
	for _, pair := range pairsOfViews(old, new) {
		names = append(names, ChangedUnits(pair[0], pair[1])...)
	}
	return sortedUnique(append(names, d.protected...))
}

// ChangedUnitsBetween returns the names of the units that may differ between two instants, excluding the first, sorted.
func (s *Snapshot) ChangedUnitsBetween(from, to time.Time) []string {
	passes := func(t time.Time) bool { return t.After(from) && !t.After(to) }
	var names []string
	for _, st := range s.statements {
		edge, recurs := st.hours.Next(from)
		if !passes(st.notBefore) && !passes(st.notAfter) && (!recurs || !passes(edge)) {
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
	for _, pair := range pairsOfViews(s, s) {
		names = append(names, pair[0].ChangedUnitsBetween(from, to)...)
	}
	return sortedUnique(names)
}

// deltaOf compares all objects of two snapshots.
func deltaOf(old, new *Snapshot) delta {
	d := delta{
		parent: old.identity,
		all: !sameClasses(old, new) || old.unsupported != new.unsupported || old.members != new.members ||
			!slices.EqualFunc(old.fleet, new.fleet, SameCapacity),
		known: onlyInOne(old.known, new.known),
	}
	d.statements = append(statementsOnlyIn(new, old), statementsOnlyIn(old, new)...)
	d.protected = differentlyProtected(old, new)
	// A refused deny affects the allows of other resources, and which ones depends on the modes.
	refuses := func(st *statement) bool { return st.effect == Deny && st.refused() }
	d.all = d.all || slices.ContainsFunc(d.statements, refuses) || !slices.Equal(old.unclassed, new.unclassed) ||
		len(d.protected) > 0 && len(old.refusedDenies)+len(new.refusedDenies) > 0
	if !d.all && !slices.Equal(old.workloads, new.workloads) {
		d.workloads(old, new)
	}
	return d
}

// differentlyProtected returns the resources whose protections differ between two snapshots.
func differentlyProtected(old, new *Snapshot) (out []string) {
	if sameProtections(old, new) {
		return nil
	}
	for name, p := range new.protected {
		if was := old.protected[name]; was == nil || !slices.Equal(was.objects, p.objects) {
			out = append(out, name)
		}
	}
	for name := range old.protected {
		if new.protected[name] == nil {
			out = append(out, name)
		}
	}
	return out
}

// statementsOnlyIn returns the statements of s that the other snapshot does not have, or has parsed again.
func statementsOnlyIn(s, other *Snapshot) (out []*statement) {
	for p, list := range s.parsed {
		if has, ok := other.parsed[p]; !ok || len(has) > 0 && len(list) > 0 && has[0] != list[0] {
			out = append(out, list...)
		}
	}
	return out
}

// workloads adds the statements about subjects whose addresses differ.
func (d *delta) workloads(old, new *Snapshot) {
	if new.unsupported.Groups || len(old.refusedDenies)+len(new.refusedDenies) > 0 {
		d.all = true // which subjects have addresses affects refusals, and through them other units
		return
	}
	was, is := old.groups(), new.groups()
	var subjects []string
	for name, g := range is {
		if before := was[name]; before == nil || !before.Equal(*g) {
			subjects = append(subjects, name)
		}
	}
	for name := range was {
		if is[name] == nil {
			subjects = append(subjects, name)
		}
	}
	for _, s := range []*Snapshot{old, new} {
		for _, name := range subjects {
			d.statements = s.naming(d.statements, name)
		}
	}
}

// naming appends the statements that have a subject among theirs, other than by "*".
func (s *Snapshot) naming(out []*statement, subject string) []*statement {
	if id, ok := s.index.subjects.find(subject); ok {
		for _, number := range s.index.bySubject.of(id) {
			out = append(out, s.statements[number])
		}
	}
	for _, number := range s.index.anySubject {
		if st := s.statements[number]; !st.subjects.any && st.subjects.hasName(subject) {
			out = append(out, st)
		}
	}
	return out
}

// UnitsAllowing returns the names of the units that contain a statement that allows a subject, other than by "*", sorted: of resources
// and of wildcards. The statement may be outside its validity or be refused, and then the unit has no rule about the subject.
func (s *Snapshot) UnitsAllowing(subject string) []string {
	var names []string
	for _, st := range s.naming(nil, subject) {
		if st.effect == Allow {
			names = s.wildcardUnitsOf(s.protectedUnitsOf(names, st), st)
		}
	}
	return sortedUnique(names)
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

// unitsOf appends the names of the units that contain or inherit a statement.
func (s *Snapshot) unitsOf(names []string, st *statement) []string {
	names = s.protectedUnitsOf(names, st)
	if st.effect == Allow {
		names = s.wildcardUnitsOf(names, st)
	}
	for _, stem := range st.wild {
		names = s.protectedUnder(names, stem)
	}
	return names
}

// protectedUnitsOf appends the names of the units of the resources that a statement names.
func (s *Snapshot) protectedUnitsOf(names []string, st *statement) []string {
	for _, r := range st.exact {
		if s.protected[r] != nil {
			names = append(names, r)
		}
	}
	return names
}

// wildcardUnitsOf appends the names of the units of the wildcards that an allow names.
func (s *Snapshot) wildcardUnitsOf(names []string, st *statement) []string {
	for _, stem := range st.wild {
		n, err := ParseName(stem + "*")
		if err != nil {
			continue
		}
		for _, c := range s.resources.overlapping(n) {
			if name := longer(stem, c.stem) + "*"; s.wildUnits[name] != nil {
				names = append(names, name)
			}
		}
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

// unitsOfBroad appends the names of the units whose rules or estimates depend on whether the given names are known.
func (s *Snapshot) unitsOfBroad(names, known []string) []string {
	for _, number := range s.index.anySubject {
		if st := s.statements[number]; st.unresolvedSubject || st.subjects.any || slices.ContainsFunc(known, st.subjects.hasName) {
			names = s.unitsOf(names, st)
		}
	}
	for name := range s.wildUnits {
		stem := strings.TrimSuffix(name, "*")
		c, ok := s.resources.of(stem)
		if ok && len(stem) > len(c.stem) && slices.ContainsFunc(known, func(n string) bool { return strings.HasPrefix(n, stem) }) {
			names = s.protectedUnder(append(names, name), stem)
		}
	}
	return names
}

// onlyInOne returns the strings that only one of two sorted lists contains.
func onlyInOne(a, b []string) []string {
	var out []string
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0], b[0]); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// workloadsOf returns the objects sorted by name, for comparison by identity.
func workloadsOf(in Input) []*v1alpha1.ExternalWorkload {
	return sortedObjects(in.Workloads, byName[*v1alpha1.ExternalWorkload])
}
