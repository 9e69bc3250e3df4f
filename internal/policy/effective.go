package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LeftOutUnknownName is the reason of an allow by prefix that does not reach a name that no member is known to have. It is
// no reason of the API: the statement itself is pushed.
const LeftOutUnknownName = "UnknownName"

// Effective is a decision as the members have it: without the statements that are refused, and with prefixes as what they
// stand for in the members.
type Effective struct {
	Decision
	// Written is what the statements mean, as Decide says.
	Written Decision
	// LeftOut are the refusals because of which Decision has another word than Written, sorted; none when it is the same.
	LeftOut []Refusal
	// Waiting are the allows of requests that do not count because their resource is in Audit while another one of the
	// workload is in Enforce, sorted; only when the connection is default-denied.
	Waiting []Ref
}

// Differs tells whether the members do not have what the statements mean.
func (e *Effective) Differs() bool { return e.Verdict != e.Written.Verdict }

// Explain is the reason of the decision, followed by what keeps it from being what the statements mean.
func (e *Effective) Explain() string {
	var b strings.Builder
	b.WriteString(e.Reason)
	if e.Differs() {
		fmt.Fprintf(&b, "; the statements mean %s", e.Written.Verdict)
		for i, r := range e.LeftOut {
			if i == 3 {
				fmt.Fprintf(&b, "; %d more are left out", len(e.LeftOut)-i)
				break
			}
			fmt.Fprintf(&b, "; %s is left out in the members (%s: %s)", r.Ref, r.Reason, r.Message)
		}
	}
	if len(e.Waiting) > 0 {
		fmt.Fprintf(&b, "; the allow of requests %s counts once its resource is in Enforce, too", e.Waiting[0])
	}
	return b.String()
}

// DecideEffective is Decide, as the members have it: statements that Compile leaves out do not count, and the allows that go
// with them do not, either. Where nothing is left out it costs little more than Decide.
func (s *Snapshot) DecideEffective(q *Query) Effective {
	e := Effective{Written: s.Decide(*q)}
	e.Decision = e.Written
	x := effectiveView{s: s, at: q.At}
	if !s.asWritten(q) {
		var ids, contested [4]uint32
		v := verdict{q: q, effective: &x}
		s.findSource(&v.source, q)
		if s.lacks.Groups {
			v.source.names, v.source.contested = q.Subjects, nil
		}
		x.source = v.source
		v.ids = s.subjectIDs(ids[:0], v.source.names)
		if v.source.contested != nil {
			v.contestedIDs = s.subjectIDs(contested[:0], v.source.contested)
		}
		e.Decision = Decision{}
		s.decision(&e.Decision, &v, s.visitNames(&v, q.Resources), q.Resources, nil)
	}
	if e.Differs() {
		slices.SortFunc(x.leftOut, compareRefusals)
		e.LeftOut = slices.Compact(x.leftOut)
	}
	if e.Verdict == DefaultDenied {
		e.Waiting = sortedRefs(x.waiting)
	}
	return e
}

// asWritten tells whether nothing that the connection could meet is left out in the members.
func (s *Snapshot) asWritten(q *Query) bool {
	if s.lacks != (Lacks{}) || s.narrow && !s.namesUnknown || len(q.Resources) > 1 {
		return false
	}
	for _, r := range q.Resources {
		if sh := s.shortageOf(r, q.At); sh != nil && sh.any {
			return false
		}
	}
	return true
}

// effectiveView keeps what a decision must not count.
type effectiveView struct {
	s  *Snapshot
	at time.Time
	// shortage is of the resource that is looked at, in its own unit and, for an allow by a wildcard, in the wildcard's.
	shortage *shortage
	wildcard *wildcardShortage
	// source is the connection's.
	source source
	// waits tells that what matches now are allows of requests that wait for Enforce.
	waits   bool
	leftOut []Refusal
	waiting []Ref
}

// begin looks at a resource.
func (x *effectiveView) begin(resource string) {
	x.shortage, x.wildcard = x.s.shortageOf(resource, x.at), nil
}

// enter looks at the statements of a wildcard.
func (x *effectiveView) enter(t *target) {
	x.wildcard = nil
	if x.shortage != nil {
		x.wildcard = x.shortage.wildcards[x.s.wildcardNames()[*t]]
	}
}

// leaves tells whether a statement that matches is left out in the members.
func (x *effectiveView) leaves(number uint32) bool {
	st := x.s.statements[number]
	if x.waits {
		x.waiting = append(x.waiting, st.ref)
		return true
	}
	if refused := x.refusals(st); len(refused) > 0 {
		x.leftOut = append(x.leftOut, refused...)
		return true
	}
	if st.effect == Allow && !x.s.reaches(&st.subjects, &x.source) {
		x.leftOut = append(x.leftOut, unknownName(st.ref))
		return true
	}
	return false
}

func unknownName(ref Ref) Refusal {
	return Refusal{Ref: ref, Reason: LeftOutUnknownName, Message: "a prefix stands for the names that are known in the members, and this one is not among them"}
}

func (x *effectiveView) refusals(st *statement) []Refusal {
	if w := x.wildcard; w != nil && st.effect == Allow {
		if w.unknown {
			return []Refusal{unknownName(st.ref)}
		}
		return w.refused[st.ref]
	}
	if x.shortage != nil {
		return x.shortage.refused[st.ref]
	}
	return nil
}

// reaches tells whether the rules made of the subjects match the source.
func (s *Snapshot) reaches(set *subjectSet, src *source) bool {
	if set.any || set.hasAddress(src.address) {
		return true
	}
	return slices.ContainsFunc(src.names, func(n string) bool {
		if _, ok := slices.BinarySearch(set.exact, n); ok {
			return true
		}
		c, ok := s.subjects.of(n)
		return ok && slices.ContainsFunc(set.stems, func(stem string) bool {
			return strings.HasPrefix(n, stem) && (len(stem) <= len(c.stem) || s.isKnown(n))
		})
	})
}

// isKnown tells whether a prefix stands for a name that it covers.
func (s *Snapshot) isKnown(name string) bool {
	if s.namesUnknown {
		return true
	}
	_, ok := slices.BinarySearch(s.known, name)
	return ok
}

// shortage is what the units lack that a resource's workloads have, during one epoch.
type shortage struct {
	epoch int
	any   bool
	// refused is what the resource's own unit lacks, by statement.
	refused map[Ref][]Refusal
	// wildcards are the units of the wildcards that cover the resource, by name.
	wildcards map[string]*wildcardShortage
}

// wildcardShortage is what the unit of a wildcard lacks for one resource.
type wildcardShortage struct {
	refused map[Ref][]Refusal
	// unknown tells that the unit does not select the resource, whose name is not known.
	unknown bool
}

// shortageOf is computed once for each resource that the snapshot has, and epoch. It is nil for what is in no class.
func (s *Snapshot) shortageOf(resource string, at time.Time) *shortage {
	epoch := s.epoch(at)
	if kept, ok := s.shortages.Load(resource); ok && kept.(*shortage).epoch == epoch {
		return kept.(*shortage)
	}
	c, ok := s.resources.of(resource)
	if !ok {
		return nil
	}
	sh := &shortage{epoch: epoch, wildcards: map[string]*wildcardShortage{}}
	if u, ok := s.CompileResource(resource, at); ok {
		sh.refused = byRef(u.Refused)
	}
	sh.any = len(sh.refused) > 0
	for _, w := range s.index.wild[headOf(resource)] {
		if !strings.HasPrefix(resource, w.stem) {
			continue
		}
		name := longer(w.stem, c.stem) + "*"
		if sh.wildcards[name] == nil {
			sh.wildcards[name] = s.wildcardShortageOf(name, resource, c, at)
		}
		sh.any = sh.any || sh.wildcards[name].unknown || len(sh.wildcards[name].refused) > 0
	}
	if _, ok := s.index.resources.find(resource); ok { // other names come from workloads, and are without number
		s.shortages.Store(resource, sh)
	}
	return sh
}

func (s *Snapshot) wildcardShortageOf(name, resource string, c *resourceClass, at time.Time) *wildcardShortage {
	out := &wildcardShortage{unknown: len(name) > len(c.stem)+1 && !s.isKnown(resource)}
	if u, ok := s.wildcardUnit(name, at); ok {
		out.refused = byRef(u.Refused)
		return out
	}
	// There is no unit: all its statements are refused, or no name that it stands for is known.
	var refused []Refusal
	for _, st := range s.wildUnits[name] {
		if st.inForce(at) {
			refused = append(refused, st.refusals(name)...)
		}
	}
	out.refused = byRef(refused)
	return out
}

func byRef(refused []Refusal) map[Ref][]Refusal {
	if len(refused) == 0 {
		return nil
	}
	out := make(map[Ref][]Refusal, len(refused))
	for _, r := range refused {
		out[r.Ref] = append(out[r.Ref], r)
	}
	return out
}

// nameWildcards gives the targets of wildcards the names of their units.
func (s *Snapshot) nameWildcards() map[target]string {
	out := map[target]string{}
	for _, list := range s.index.wild {
		for _, w := range list {
			for i := range w.byClass {
				if c := &w.byClass[i]; c.table < c.end {
					out[c.target] = longer(w.stem, c.class.stem) + "*"
				}
			}
		}
	}
	return out
}

// isNarrow tells whether an allow has a prefix for subject that stands for known names only.
func (s *Snapshot) isNarrow(st *statement) bool {
	return st.effect == Allow && slices.ContainsFunc(st.subjects.stems, func(stem string) bool {
		c, ok := s.subjects.of(stem)
		return !ok || len(stem) != len(c.stem)
	})
}
