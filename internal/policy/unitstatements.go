package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// UnitStatement is one statement in force that covers a unit's resource, by its exact name or by a wildcard, allows of
// wildcards included. Rules join statements for a dataplane that knows clients by labels and adds allows of several
// objects up; UnitStatements are for those that do not.
type UnitStatement struct {
	Ref    Ref
	Effect Effect
	// Anyone tells that "*" is among the subjects.
	Anyone bool
	// Subjects are exact names, sorted.
	Subjects []UnitSubject
	// Patterns are the wildcard subjects as written, sorted. Those of an allow that are narrower than their class are not
	// among them: the known names that they cover are in Subjects.
	Patterns []string
	// Ranges are the subjects that are address ranges, and the addresses of the subjects' ExternalWorkloads, sorted. They
	// are about sources outside the fleet, never about pods or nodes.
	Ranges []AddressRange
	// Actions of the resource's class that the statement names, by name; never empty.
	Actions []UnitAction
	// OverriddenBy, when set, is a refused deny that could have overridden this allow: it must not be translated.
	OverriddenBy Ref
}

// UnitSubject is a client.
type UnitSubject struct {
	Name string
	// Class is its SubjectClass.
	Class string
	// ServiceAccount of its pods; "": the class has no template for it.
	ServiceAccount string
}

// UnitAction is what can be done.
type UnitAction struct {
	Name  string
	Ports []v1alpha1.Port
	HTTP  []v1alpha1.HTTPMatch
}

// AddressRange is a prefix without the longer ones in Except, which are sorted.
type AddressRange struct {
	Prefix netip.Prefix
	Except []netip.Prefix
	// External tells that the addresses are those of a subject's ExternalWorkloads, and not written in the statement.
	External bool
}

// WithStatements is the unit with its Statements, which are never nil then.
func (s *Snapshot) WithStatements(u Unit, at time.Time) Unit {
	u.Statements = []UnitStatement{}
	c, ok := s.resources.of(u.Resource)
	if !ok {
		return u
	}
	overriders := s.overriders(u.Resource, "", c, at, nil)
	for deny := range overriders {
		if !deny.flawed() {
			delete(overriders, deny) // only one enforcer cannot express it; another decides for itself
		}
	}
	for _, st := range s.allAbout(u.Resource) {
		if !st.inForce(at) || st.flawed() {
			continue
		}
		if x := s.unitStatement(st, c); len(x.Actions) > 0 {
			x.OverriddenBy = s.overriding(st, c, overriders)
			u.Statements = append(u.Statements, x)
		}
	}
	return u
}

// flawed tells whether something is wrong with the statement itself, for whatever enforcer.
func (st *statement) flawed() bool {
	return st.vagueSubject || st.vagueAction || st.written.Effect != st.effect ||
		slices.ContainsFunc(st.flaws, func(f flaw) bool { return f.reason != v1alpha1.RefusedUnsupported })
}

// allAbout are all statements about the resource, by ref; about leaves allows of wildcards to a unit of their own.
func (s *Snapshot) allAbout(resource string) []*statement {
	var out []*statement
	for _, n := range s.numbersAbout(resource, func(*statement) bool { return true }) {
		out = append(out, s.statements[n])
	}
	return out
}

func (s *Snapshot) unitStatement(st *statement, c *resourceClass) UnitStatement {
	x := UnitStatement{Ref: st.ref, Effect: st.effect, Anyone: st.subjects.any}
	names, patterns := s.expanded(st)
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

// expanded are a statement's exact names and its wildcards. What is narrower than a class stands, in an allow, for the
// known names that it covers; a deny would miss those that are not known yet.
func (s *Snapshot) expanded(st *statement) (names, patterns []string) {
	names = slices.Clone(st.subjects.exact)
	for _, stem := range st.subjects.stems {
		class, ok := s.subjects.of(stem)
		if st.effect == Deny || !ok || len(stem) == len(class.stem) {
			patterns = append(patterns, stem+"*")
			continue
		}
		for _, name := range s.knownUnder(stem) {
			if _, err := labelValue(class.stem, name); err == nil {
				names = append(names, name)
			}
		}
	}
	return sortedUnique(names), patterns
}

// overriding is the first of the refused denies that could have overridden an allow, or the zero Ref.
func (s *Snapshot) overriding(st *statement, c *resourceClass, overriders map[*statement][]v1alpha1.Port) Ref {
	var first Ref
	if st.effect == Deny {
		return first
	}
	for deny, ports := range overriders {
		if portsOverlap(ports, c.portsOf(st)) && s.mayShareASource(deny, st) &&
			(first == Ref{} || compareRefs(deny.ref, first) < 0) {
			first = deny.ref
		}
	}
	return first
}

// ownership is the addresses by owner, and all of them in order.
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

// rangesOf are the addresses that count as the subjects: each prefix without the longer ones that do not.
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

// counts tells whether addresses with this longest prefix are one of the subjects. Of several owners' statements only
// the denies count.
func (x *addresses) counts(p netip.Prefix, subjects *subjectSet, effect Effect) bool {
	owners := x.owners[p]
	return (len(owners) == 1 || effect == Deny) && slices.ContainsFunc(owners, subjects.hasName)
}

// comparePrefixes puts a prefix before everything that it contains, and that before what follows.
func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
