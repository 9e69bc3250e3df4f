package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
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
	if s.leavesOut(q, nil) {
		e.Decision = Decision{}
		s.decideEffective(&e.Decision, q, &x, nil)
	}
	s.wallOff(&e.Decision, q, &x, e.Written.Statements)
	if e.Differs() {
		slices.SortFunc(x.leftOut, compareRefusals)
		e.LeftOut = slices.Compact(x.leftOut)
	}
	if e.Verdict == DefaultDenied {
		e.Waiting = sortedRefs(x.waiting)
	}
	return e
}

// EffectiveInto is the decision of DecideEffective without what explains it; into is as for DecideInto.
func (s *Snapshot) EffectiveInto(q *Query, into []Ref) Decision {
	d := s.DecideInto(q, into)
	x := effectiveView{s: s, at: q.At}
	if !s.isFinal(d.Verdict) && s.leavesOut(q, nil) {
		d = Decision{}
		s.decideEffective(&d, q, &x, into)
	}
	s.wallOff(&d, q, &x, nil)
	return d
}

// isFinal reports whether a decision by what is written is the same by what the members have: while every deny is pushed, only
// allows can be left out, so what is not let in by an allow stays as it is.
func (s *Snapshot) isFinal(w Verdict) bool {
	return (w == Denied || w == DefaultDenied || w == Unmanaged) && len(s.refusedDenies) == 0 && s.lacks == (Lacks{})
}

// EffectiveEnforced is EffectiveInto as if every resource of the query were onboarded and in Enforce: what the members would
// have then, without what would be refused.
func (s *Snapshot) EffectiveEnforced(q *Query, into []Ref) (d Decision) {
	d = s.DecideEnforced(q, into)
	if s.isFinal(d.Verdict) || !s.leavesOut(q, q.Resources) {
		return d
	}
	x := effectiveView{s: s, at: q.At, supposed: q.Resources}
	d = Decision{}
	s.decideEffective(&d, q, &x, into)
	return d
}

// LeavesOut reports whether EffectiveInto may have another answer than DecideInto. It depends on the resources, the cluster and
// the time of the query only, so that a caller with many questions about one resource can ask once.
func (s *Snapshot) LeavesOut(q *Query) bool {
	return s.leavesOut(q, nil) || s.several && q.Cluster != ""
}

// decideEffective decides with a view of what is left out; the supposed resources of the view count as enforced.
func (s *Snapshot) decideEffective(d *Decision, q *Query, x *effectiveView, into []Ref) {
	var ids, contested [4]uint32
	v := verdict{q: q, effective: x, asEnforced: x.supposed != nil}
	s.findSource(&v.source, q)
	if s.lacks.Groups {
		v.source.names, v.source.contested = q.Subjects, nil
	}
	x.source = v.source
	v.ids = s.subjectIDs(ids[:0], v.source.names)
	if v.source.contested != nil {
		v.contestedIDs = s.subjectIDs(contested[:0], v.source.contested)
	}
	s.decision(d, &v, s.visitNames(&v, q.Resources), q.Resources, into)
}

// leavesOut reports whether something that the connection could meet may be left out in the members, if the supposed resources
// were in Enforce.
func (s *Snapshot) leavesOut(q *Query, supposed []string) bool {
	if s.lacks != (Lacks{}) || len(q.Resources) > 1 {
		return true
	}
	for _, r := range q.Resources {
		if sh := s.shortageOf(r, q.At, supposed); sh != nil && sh.any {
			return true
		}
		if c, ok := s.resources.of(r); ok && c.judgesRequests && s.noRequests[q.Cluster] != "" {
			return true
		}
	}
	return false
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
	// supposed are the resources that are regarded as in Enforce; nil: none.
	supposed []string
	// noRequests says why the member has no allows of requests, while what matches is one.
	noRequests string
	// waits tells that what matches now are allows of requests that wait for Enforce.
	waits   bool
	leftOut []Refusal
	waiting []Ref
}

// begin looks at a resource.
func (x *effectiveView) begin(resource string) {
	x.shortage, x.wildcard = x.s.shortageOf(resource, x.at, x.supposed), nil
}

// closes tells whether the unit of the resource that was looked at opens no ports of no action. It may be nil.
func (x *effectiveView) closes() bool { return x != nil && x.shortage != nil && x.shortage.closed }

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
	if x.noRequests != "" {
		x.leftOut = append(x.leftOut, Refusal{Ref: st.ref, Reason: v1alpha1.RefusedUnsupported,
			Message: "rules about requests (method, path) cannot be enforced in the member: " + x.noRequests})
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
