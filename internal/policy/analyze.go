package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// FindingKind says what is odd about a statement.
type FindingKind string

const (
	// Shadowed: an allow of which denies take away everything.
	Shadowed FindingKind = "shadowed"
	// Redundant: others say the same, at least as long.
	Redundant FindingKind = "redundant"
	// Contradictory: an allow of which denies take away a part.
	Contradictory FindingKind = "contradictory"
)

// Finding is a statement that does not do what its author may think.
type Finding struct {
	Kind FindingKind
	Ref  Ref
	// Other are the statements that make it so, sorted.
	Other []Ref
	// Example is a connection that the statement and one of Other match.
	Example Query
	Message string
}

// Analyze looks at the statements in force that can be pushed, one against the others, as if every resource were
// enforced. Of statements that say the same, the first by ref is not redundant. Sorted by ref.
func (s *Snapshot) Analyze(at time.Time) []Finding {
	a := analysis{Snapshot: s, at: at, dropped: make([]bool, len(s.statements)), read: map[uint32]read{}}
	for i, st := range s.statements {
		a.dropped[i] = !st.inForce(at) || st.refused()
		if !a.dropped[i] && st.effect == Deny {
			a.denies = append(a.denies, uint32(i))
		}
	}
	var out []Finding
	// Backwards, so that the first of several that say the same is what remains.
	for i := len(s.statements) - 1; i >= 0; i-- {
		if a.dropped[i] {
			continue
		}
		if f, ok := a.redundant(uint32(i)); ok {
			a.dropped[i] = true
			out = append(out, f)
			continue
		}
		if f, ok := a.overruled(uint32(i)); ok {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Or(compareRefs(a.Ref, b.Ref), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

type analysis struct {
	*Snapshot
	at time.Time
	// dropped statements are not in force, refused or redundant.
	dropped []bool
	denies  []uint32
	// read are the patterns of statements that were looked at.
	read map[uint32]read
	// resource is the last exact one, about its statements.
	resource string
	about    []uint32
}

// read is a statement's subjects and resources as patterns.
type read struct{ subjects, resources []pattern }

func (a *analysis) patterns(number uint32) read {
	r, ok := a.read[number]
	if !ok {
		st := a.statements[number]
		r = read{st.subjects.patterns(), st.resourcePatterns()}
		a.read[number] = r
	}
	return r
}

// part is what a statement says of one subject, one resource and the actions of one class.
type part struct {
	subject, resource pattern
	class             *resourceClass
	actions           uint32
}

func (a *analysis) parts(number uint32) []part {
	var out []part
	st := a.patterns(number)
	for _, r := range st.resources {
		for _, c := range a.classesOf(r) {
			if actions := c.actionsOf(a.statements[number]); actions != 0 {
				for _, sub := range st.subjects {
					out = append(out, part{sub, r, c, actions})
				}
			}
		}
	}
	return out
}

// overlap is what another statement says of the same; whole tells whether it is about all of the subjects and resources.
func (a *analysis) overlap(p part, other uint32) (shared part, whole bool) {
	o := a.patterns(other)
	actions := p.class.actionsOf(a.statements[other]) & p.actions
	if actions == 0 {
		return part{}, false
	}
	for _, r := range o.resources {
		resource, ok := common(r, p.resource)
		if !ok {
			continue
		}
		for _, sub := range o.subjects {
			if subject, ok := common(sub, p.subject); ok {
				found := part{subject, resource, p.class, actions}
				if r.covers(p.resource) && sub.covers(p.subject) {
					return found, true
				}
				shared = found
			}
		}
	}
	return shared, false
}

// redundant finds the others of the same effect that together say everything that a statement says.
func (a *analysis) redundant(number uint32) (Finding, bool) {
	st := a.statements[number]
	others, example, covered := a.covered(number, st.effect)
	if !covered {
		return Finding{}, false
	}
	return Finding{Kind: Redundant, Ref: st.ref, Other: others, Example: example,
		Message: fmt.Sprintf("everything that it says is said by %s: remove it", listed(others))}, true
}

// overruled finds the denies that take away from an allow.
func (a *analysis) overruled(number uint32) (Finding, bool) {
	st := a.statements[number]
	if st.effect == Deny {
		return Finding{}, false
	}
	if others, example, covered := a.covered(number, Deny); covered {
		return Finding{Kind: Shadowed, Ref: st.ref, Other: others, Example: example,
			Message: fmt.Sprintf("where its resources are enforced it never allows anything, because of %s: remove one of them", listed(others))}, true
	}
	var others []Ref
	var example Query
	for _, p := range a.parts(number) {
		for _, n := range a.candidates(p, Deny) {
			shared, _ := a.overlap(p, n)
			if shared.actions == 0 {
				continue
			}
			if others = append(others, a.refs[n]); len(others) == 1 {
				example = a.example(shared.subject, shared.resource, actionNamed(shared.class, shared.actions), shared.class, a.at)
			}
		}
	}
	if len(others) == 0 {
		return Finding{}, false
	}
	others = sortedRefs(others)
	return Finding{Kind: Contradictory, Ref: st.ref, Other: others, Example: example,
		Message: fmt.Sprintf("where its resources are enforced, a part of it is denied by %s: narrow one of them", listed(others))}, true
}

// covered tells whether statements of an effect say everything that a statement says, and as long.
func (a *analysis) covered(number uint32, by Effect) (others []Ref, example Query, ok bool) {
	st := a.statements[number]
	parts := a.parts(number)
	for i, p := range parts {
		left := p.actions
		for _, n := range a.candidates(p, by) {
			o := a.statements[n]
			if n == number || !o.outlasts(st) {
				continue
			}
			shared, whole := a.overlap(p, n)
			if !whole || shared.actions&left == 0 {
				continue
			}
			if i == 0 && len(others) == 0 {
				example = a.example(p.subject, p.resource, actionNamed(p.class, shared.actions), p.class, a.at)
			}
			others = append(others, o.ref)
			if left &^= shared.actions; left == 0 {
				break
			}
		}
		if left != 0 {
			return nil, Query{}, false
		}
	}
	return sortedRefs(others), example, len(parts) > 0
}

// candidates are the statements of an effect, not dropped, that may be about a part.
func (a *analysis) candidates(p part, effect Effect) []uint32 {
	numbers := a.denies
	if !p.resource.wild && p.subject.exact() {
		numbers = a.index.numbersOf(p.subject.text, p.resource.text)
	} else if !p.resource.wild {
		if a.resource != p.resource.text {
			a.resource = p.resource.text
			a.about = a.numbersAbout(a.resource, func(*statement) bool { return true })
		}
		numbers = a.about
	} else if effect == Allow {
		numbers = nil
		for _, w := range a.index.wild[headOf(p.resource.text)] {
			if p.resource.text == w.stem || (pattern{text: w.stem, wild: true}).covers(p.resource) {
				numbers = append(numbers, w.statements...)
			}
		}
		slices.Sort(numbers)
	}
	var out []uint32
	for _, n := range numbers {
		if !a.dropped[n] && a.statements[n].effect == effect {
			out = append(out, n)
		}
	}
	return out
}

// listed names a few statements.
func listed(refs []Ref) string {
	const few = 3
	text := ""
	for i, r := range refs[:min(few, len(refs))] {
		if i > 0 {
			text += ", "
		}
		text += r.String()
	}
	if more := len(refs) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
