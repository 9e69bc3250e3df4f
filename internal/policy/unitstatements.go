package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// UnitStatement is one statement in force that covers a unit's resource, by its exact name or by a wildcard, including
// allows of wildcards. Rules join statements for a dataplane that selects clients by labels and combines the allows of
// several objects; UnitStatements are for dataplanes that do not.
type UnitStatement struct {
	Ref    Ref
	Effect Effect
	// Anyone reports whether "*" is among the subjects.
	Anyone bool
	// Subjects are the exact names, sorted.
	Subjects []UnitSubject
	// Patterns are the wildcard subjects as written, sorted. The wildcards of an allow that are narrower than their
	// class are replaced by the known names that they cover, which are in Subjects.
	Patterns []string
	// Ranges are the subjects that are address ranges, and the addresses of the subjects' ExternalWorkloads, sorted.
	// They match sources outside the fleet, never pods or nodes.
	Ranges []AddressRange
	// Actions are the actions of the resource's class that the statement names, by name; never empty.
	Actions []UnitAction
	// OverriddenBy, if set, is a refused deny that could have overridden this allow. The allow must then not be
	// translated.
	OverriddenBy Ref
}

// UnitSubject is an exact client of a UnitStatement.
type UnitSubject struct {
	Name string
	// Class is the name of its SubjectClass.
	Class string
	// ServiceAccount is the service account of its pods, or "" if the class has no template for it.
	ServiceAccount string
}

// UnitAction is an action that a UnitStatement allows or denies.
type UnitAction struct {
	Name  string
	Ports []v1alpha1.Port
	HTTP  []v1alpha1.HTTPMatch
}

// AddressRange is a prefix without the longer prefixes in Except, which are sorted.
type AddressRange struct {
	Prefix netip.Prefix
	Except []netip.Prefix
	// External reports whether the addresses come from a subject's ExternalWorkloads instead of the statement.
	External bool
}

// WithStatements returns the unit with its Statements, which are then never nil.
func (s *Snapshot) WithStatements(u Unit, at time.Time) Unit {
	return s.withStatements(u, at, nil, s.knownUnder)
}

// withStatements is WithStatements as if the supposed resources were in Enforce. known returns the names that a prefix
// stands for.
func (s *Snapshot) withStatements(u Unit, at time.Time, supposed []string, known func(stem string) []string) Unit {
	u.Statements = []UnitStatement{}
	c, ok := s.resources.of(u.Resource)
	if !ok {
		return u
	}
	overriders := s.overriders(u.Resource, "", c, at, supposed)
	for deny := range overriders {
		if !deny.flawed() {
			delete(overriders, deny) // one enforcer cannot express it, but another may
		}
	}
	for _, st := range s.allStatementsFor(u.Resource) {
		if !st.inForce(at) || st.flawed() {
			continue
		}
		if x := s.unitStatement(st, c, known); len(x.Actions) > 0 {
			x.OverriddenBy = s.overriding(st, c, overriders)
			u.Statements = append(u.Statements, x)
		}
	}
	return u
}

// flawed reports whether the statement itself is invalid, regardless of the enforcer.
func (st *statement) flawed() bool {
	return st.unresolvedSubject || st.unresolvedAction || st.written.Effect != st.effect ||
		slices.ContainsFunc(st.flaws, func(f flaw) bool { return f.reason != v1alpha1.RefusedUnsupported })
}

// allStatementsFor returns all statements about the resource, by ref. In contrast, statementsFor leaves allows of
// wildcards to units of their own.
func (s *Snapshot) allStatementsFor(resource string) []*statement {
	var out []*statement
	for _, n := range s.numbersAbout(resource, func(*statement) bool { return true }) {
		out = append(out, s.statements[n])
	}
	return out
}

func (s *Snapshot) unitStatement(st *statement, c *resourceClass, known func(stem string) []string) UnitStatement {
	x := UnitStatement{Ref: st.ref, Effect: st.effect, Anyone: st.subjects.any}
	names, patterns := s.expanded(st, known)
	x.Patterns = patterns
	for _, name := range names {
		if class, ok := s.subjects.of(name); ok {
			subject := UnitSubject{Name: name, Class: class.object.Name}
			if template := class.object.Spec.ServiceAccountTemplate; template != "" {
				subject.ServiceAccount = strings.Replace(template, "{id}", strings.TrimPrefix(name, class.stem), 1)
			}
			x.Subjects = append(x.Subjects, subject)
		}
	}
	for _, p := range st.subjects.prefixes {
		x.Ranges = append(x.Ranges, AddressRange{Prefix: p})
	}
	x.Ranges = append(x.Ranges, s.external.rangesOf(&st.subjects, st.effect)...)
	slices.SortFunc(x.Ranges, func(a, b AddressRange) int {
		return cmp.Or(comparePrefixes(a.Prefix, b.Prefix), slices.CompareFunc(a.Except, b.Except, comparePrefixes))
	})
	for i := range c.actions {
		if a := &c.actions[i]; st.hasAction(a.name) {
			x.Actions = append(x.Actions, UnitAction{Name: a.name, Ports: slices.Clone(a.ports), HTTP: slices.Clone(a.http)})
		}
	}
	return x
}

// expanded returns a statement's exact names and its wildcards. In an allow, a wildcard that is narrower than a class
// is replaced by the known names that it covers. In a deny it is not, because the deny would miss names that are not
// known yet.
func (s *Snapshot) expanded(st *statement, known func(stem string) []string) (names, patterns []string) {
	names = slices.Clone(st.subjects.exact)
	for _, stem := range st.subjects.stems {
		class, ok := s.subjects.of(stem)
		if st.effect == Deny || !ok || len(stem) == len(class.stem) {
			patterns = append(patterns, stem+"*")
			continue
		}
		for _, name := range known(stem) {
			if _, err := labelValue(class.stem, name); err == nil {
				names = append(names, name)
			}
		}
	}
	return sortedUnique(names), patterns
}

// overriding returns the first of the refused denies that could have overridden an allow, or the zero Ref.
func (s *Snapshot) overriding(st *statement, c *resourceClass, overriders map[*statement][]v1alpha1.Port) Ref {
	var first Ref
	if st.effect == Deny {
		return first
	}
	for deny, ports := range overriders {
		if portsOverlap(ports, c.portsOf(st)) && s.mayShareSource(deny, st) &&
			(first == Ref{} || deny.ref.Compare(first) < 0) {
			first = deny.ref
		}
	}
	return first
}

// ownership contains the addresses by owner, and all of them in order.
type ownership struct {
	byOwner map[string][]netip.Prefix
	all     []netip.Prefix
}

func (x *addresses) ownership() ownership {
	o := ownership{byOwner: map[string][]netip.Prefix{}}
	for p, owners := range x.owners {
		o.all = append(o.all, p)
		for _, owner := range owners {
			o.byOwner[owner] = append(o.byOwner[owner], p)
		}
	}
	slices.SortFunc(o.all, comparePrefixes)
	return o
}

// rangesOf returns the addresses that count as the subjects: each prefix without the longer prefixes that do not count.
func (x *addresses) rangesOf(subjects *subjectSet, effect Effect) []AddressRange {
	if len(x.owners) == 0 {
		return nil
	}
	o := x.owned()
	var mine []netip.Prefix
	for _, name := range subjects.exact {
		mine = append(mine, o.byOwner[name]...)
	}
	if len(subjects.stems) > 0 {
		for owner, prefixes := range o.byOwner {
			if subjects.hasName(owner) {
				mine = append(mine, prefixes...)
			}
		}
	}
	slices.SortFunc(mine, comparePrefixes)
	var out []AddressRange
	for _, p := range slices.Compact(mine) {
		if !x.counts(p, subjects, effect) {
			continue
		}
		r := AddressRange{Prefix: p, External: true}
		from, _ := slices.BinarySearchFunc(o.all, p, comparePrefixes)
		for _, longer := range o.all[from:] {
			if !p.Contains(longer.Addr()) {
				break
			}
			if longer.Bits() > p.Bits() && !x.counts(longer, subjects, effect) {
				r.Except = append(r.Except, longer)
			}
		}
		out = append(out, r)
	}
	return out
}

// counts reports whether addresses with this longest prefix are one of the subjects. If several subjects own a prefix,
// only denies count.
func (x *addresses) counts(p netip.Prefix, subjects *subjectSet, effect Effect) bool {
	owners := x.owners[p]
	return (len(owners) == 1 || effect == Deny) && slices.ContainsFunc(owners, subjects.hasName)
}

// comparePrefixes orders a prefix before the prefixes that it contains, and these before the prefixes that follow.
func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
