package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// FindingKind classifies a finding.
type FindingKind string

const (
	// Shadowed marks an allow that denies override completely.
	Shadowed FindingKind = "shadowed"
	// Redundant marks a statement whose content other statements cover, for at least as long.
	Redundant FindingKind = "redundant"
	// Contradictory marks an allow that denies override partly.
	Contradictory FindingKind = "contradictory"
)

// Finding describes a statement that may not have the effect that its author expects.
type Finding struct {
	Kind FindingKind
	Ref  Ref
	// Other are the statements that cause the finding, sorted.
	Other []Ref
	// Example is a connection that the statement and one of Other match.
	Example Query
	Message message.Message
}

// Analyze compares the statements in force that can be pushed with each other, as if every resource were in Enforce. Of
// statements with the same content, the first by ref is not redundant. The findings are sorted by ref.
func (s *Snapshot) Analyze(at time.Time) []Finding {
	a := analysis{Snapshot: s, at: at, excluded: make([]bool, len(s.statements)), cached: make([]patternSets, len(s.statements))}
	for i, st := range s.statements {
		a.excluded[i] = !st.inForce(at) || st.refused()
		if !a.excluded[i] && st.effect == Deny {
			a.denies = append(a.denies, uint32(i))
		}
	}
	var out []Finding
	// The loop runs backwards, so that the first of several equal statements remains.
	for i := len(s.statements) - 1; i >= 0; i-- {
		if a.excluded[i] {
			continue
		}
		claims := a.claims(uint32(i))
		if f, ok := a.redundant(uint32(i), claims); ok {
			a.excluded[i] = true
			out = append(out, f)
			continue
		}
		if f, ok := a.overruled(uint32(i), claims); ok {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

type analysis struct {
	*Snapshot
	at time.Time
	// excluded marks statements that are not in force, refused or redundant.
	excluded []bool
	denies   []uint32
	// cached contains the patterns of each statement that was examined.
	cached []patternSets
	// claimed and found are the memory of claims and candidates, which is used again for each statement.
	claimed []claim
	found   []uint32
	// resource is the last exact resource, and about are its statements.
	resource string
	about    []uint32
}

// patternSets are a statement's subjects and resources as patterns.
type patternSets struct{ subjects, resources []pattern }

func (a *analysis) patterns(number uint32) patternSets {
	r := &a.cached[number]
	if r.subjects == nil {
		st := a.statements[number]
		*r = patternSets{st.subjects.patterns(), st.resourcePatterns()}
	}
	return *r
}

// claim is the part of a statement about one subject, one resource and the actions of one class.
type claim struct {
	subject, resource pattern
	class             *resourceClass
	actions           uint32
}

// claims returns the parts of a statement about each subject, resource and class. They are valid until the next call.
func (a *analysis) claims(number uint32) []claim {
	out := a.claimed[:0]
	st := a.patterns(number)
	for _, r := range st.resources {
		for _, c := range a.classesOf(r) {
			if actions := c.actionsOf(a.statements[number]); actions != 0 {
				for _, sub := range st.subjects {
					out = append(out, claim{sub, r, c, actions})
				}
			}
		}
	}
	a.claimed = out
	return out
}

// overlap returns the part of a claim that another statement has in common with it. whole reports whether that
// statement covers all of the subjects and resources.
func (a *analysis) overlap(p claim, other uint32) (shared claim, whole bool) {
	o := a.patterns(other)
	actions := p.class.actionsOf(a.statements[other]) & p.actions
	if actions == 0 {
		return claim{}, false
	}
	for _, r := range o.resources {
		resource, ok := common(r, p.resource)
		if !ok {
			continue
		}
		for _, sub := range o.subjects {
			if subject, ok := common(sub, p.subject); ok {
				found := claim{subject, resource, p.class, actions}
				if r.covers(p.resource) && sub.covers(p.subject) {
					return found, true
				}
				shared = found
			}
		}
	}
	return shared, false
}

// redundant returns the other statements of the same effect that together cover a statement.
func (a *analysis) redundant(number uint32, claims []claim) (Finding, bool) {
	st := a.statements[number]
	others, example, covered := a.covered(number, claims, st.effect)
	if !covered {
		return Finding{}, false
	}
	return Finding{Kind: Redundant, Ref: st.ref, Other: others, Example: example,
		Message: message.FindingCovered(listed(others))}, true
}

// overruled returns the denies that override an allow, completely or partly.
func (a *analysis) overruled(number uint32, claims []claim) (Finding, bool) {
	st := a.statements[number]
	if st.effect == Deny {
		return Finding{}, false
	}
	if others, example, covered := a.covered(number, claims, Deny); covered {
		return Finding{Kind: Shadowed, Ref: st.ref, Other: others, Example: example,
			Message: message.FindingOverridden(listed(others))}, true
	}
	var others []Ref
	var example Query
	for _, p := range claims {
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
		Message: message.FindingPartlyDenied(listed(others))}, true
}

// covered reports whether statements of an effect together cover a statement, for at least as long.
func (a *analysis) covered(number uint32, claims []claim, by Effect) (others []Ref, example Query, ok bool) {
	st := a.statements[number]
	for i, p := range claims {
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
	return sortedRefs(others), example, len(claims) > 0
}

// candidates returns the statements of an effect, without excluded ones, that may overlap with a claim. They are valid until
// the next call.
func (a *analysis) candidates(p claim, effect Effect) []uint32 {
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
		for _, w := range a.index.wildcards[headOf(p.resource.text)] {
			if p.resource.text == w.stem || (pattern{text: w.stem, wild: true}).covers(p.resource) {
				numbers = append(numbers, w.statements...)
			}
		}
		slices.Sort(numbers)
	}
	out := a.found[:0]
	for _, n := range numbers {
		if !a.excluded[n] && a.statements[n].effect == effect {
			out = append(out, n)
		}
	}
	a.found = out
	return out
}

// listed names the first few statements.
func listed(refs []Ref) message.Message {
	const few = 3
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.String()
	}
	return message.NamesOf(names, few)
}
