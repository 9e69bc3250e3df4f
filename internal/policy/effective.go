package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// LeftOutUnknownName is the reason for an allow by prefix that does not apply to a name that no member is known to
// have. It is not a reason of the API, because the statement itself is pushed.
const LeftOutUnknownName = "UnknownName"

// Effective is a decision by what the members have: without refused statements, and with prefixes expanded to the known
// names.
type Effective struct {
	Decision
	// Cilium is the verdict of Cilium alone. It differs from Verdict only if another enforcer enforces a resource of the
	// connection: Cilium may let through what that enforcer refuses.
	Cilium Verdict
	// Written is the decision by the statements as written; see Decide.
	Written Decision
	// LeftOut are the refusals because of which the verdict differs from Written, sorted; empty if it does not differ.
	LeftOut []Refusal
	// Waiting are the allows that do not count because their resource is not in Enforce while another resource of the
	// workload is, sorted: for Cilium those of HTTP requests in Audit, for other enforcers all. It is set only if the
	// connection is default-denied.
	Waiting []Ref
}

// Differs reports whether the members have another verdict than the statements as written.
func (e *Effective) Differs() bool { return e.Verdict != e.Written.Verdict }

// Explain returns the reason of the decision, followed by the reasons why it differs from the statements as written.
func (e *Effective) Explain() message.Message {
	var parts []message.Message
	if e.Differs() {
		parts = append(parts, message.DecisionMeans(string(e.Written.Verdict)))
		for i, r := range e.LeftOut {
			if i == 3 {
				parts = append(parts, message.DecisionMoreLeftOut(len(e.LeftOut)-i))
				break
			}
			parts = append(parts, message.DecisionLeftOut(r.Ref.String(), r.Reason, r.Message))
		}
	}
	if len(e.Waiting) > 0 {
		parts = append(parts, message.DecisionWaiting(e.Waiting[0].String()))
	}
	if len(parts) == 0 {
		return e.Reason.Message()
	}
	return message.DecisionExplained(e.Reason.Message(), parts)
}

// DecideEffective is like Decide, but decides by what the members have: statements that Compile leaves out do not
// count, and neither do the allows that are left out because of them. If nothing is left out, it is hardly slower than
// Decide.
func (s *Snapshot) DecideEffective(q *Query) Effective {
	s = s.In(q.Cluster)
	e := Effective{Written: s.Decide(*q)}
	e.Decision = e.Written
	var x effectiveView
	if s.hasOtherEnforcers(q.Resources) {
		e.Decision, e.Cilium, x = s.decideByEnforcers(q, e.Written.Statements, false)
	} else {
		x = effectiveView{s: s, at: q.At, unidentified: s.unidentifiedSubjects(q)}
		if x.unidentified != nil || s.leavesOut(q, nil) {
			e.Decision = Decision{}
			s.decideEffective(&e.Decision, q, &x, nil)
		}
		s.applyAddressDeny(&e.Decision, q, &x, e.Written.Statements, nil)
		e.Cilium = e.Verdict
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

// EffectiveInto returns the decision of DecideEffective without the explanation. See DecideInto for into.
func (s *Snapshot) EffectiveInto(q *Query, into []Ref) Decision {
	s = s.In(q.Cluster)
	if s.hasOtherEnforcers(q.Resources) {
		d, _, _ := s.decideByEnforcers(q, nil, false)
		return d
	}
	d := s.DecideInto(q, into)
	if s.isFinal(d.Verdict) {
		return d
	}
	x := effectiveView{s: s, at: q.At, unidentified: s.unidentifiedSubjects(q)}
	if x.unidentified != nil || s.leavesOut(q, nil) {
		d = Decision{}
		s.decideEffective(&d, q, &x, into)
	}
	s.applyAddressDeny(&d, q, &x, nil, nil)
	return d
}

// isFinal reports whether a verdict by the statements as written is also the effective verdict: while every deny is
// pushed, only allows can be left out, which changes only allowed connections.
func (s *Snapshot) isFinal(w Verdict) bool {
	return (w == Denied || w == DefaultDenied || w == Unmanaged) && len(s.refusedDenies) == 0 && s.unsupported == (Unsupported{})
}

// EffectiveEnforced is like EffectiveInto, but treats every resource of the query as onboarded and in Enforce: it
// decides by what the members would then have.
func (s *Snapshot) EffectiveEnforced(q *Query, into []Ref) (d Decision) {
	s = s.In(q.Cluster)
	if s.hasOtherEnforcers(q.Resources) {
		d, _, _ = s.decideByEnforcers(q, nil, true)
		return d
	}
	d = s.DecideEnforced(q, into)
	if s.isFinal(d.Verdict) {
		return d
	}
	x := effectiveView{s: s, at: q.At, supposed: q.Resources, unidentified: s.unidentifiedSubjects(q)}
	if x.unidentified != nil || s.leavesOut(q, q.Resources) {
		d = Decision{}
		s.decideEffective(&d, q, &x, into)
	}
	s.applyAddressDeny(&d, q, &x, nil, q.Resources)
	return d
}

// LeavesOut reports whether EffectiveInto may differ from DecideInto. The result depends only on the resources, the
// cluster and the time of the query, so that a caller with many queries about one resource can call it once.
func (s *Snapshot) LeavesOut(q *Query) bool {
	s = s.In(q.Cluster)
	return s.leavesOut(q, nil) || s.several && q.Cluster != "" || s.hasOtherEnforcers(q.Resources)
}

// decideEffective decides with a view of what is left out. The supposed resources of the view are treated as in
// Enforce.
func (s *Snapshot) decideEffective(d *Decision, q *Query, x *effectiveView, into []Ref) {
	var ids, contested [4]uint32
	v := evaluation{q: q, effective: x, asEnforced: x.supposed != nil}
	s.findSource(&v.source, q)
	if s.unsupported.Groups && x.other == nil {
		v.source.names, v.source.contested = q.Subjects, nil
	}
	x.source, x.known = v.source, v.source
	if x.unidentified != nil {
		x.known.names = slices.DeleteFunc(slices.Clone(v.source.names), x.isUnidentified)
	}
	v.ids = s.subjectIDs(ids[:0], v.source.names)
	if v.source.contested != nil {
		v.contestedIDs = s.subjectIDs(contested[:0], v.source.contested)
	}
	s.writeDecision(d, &v, s.visitNames(&v, q.Resources), q.Resources, into)
}

// leavesOut reports whether a statement that the connection could match may be left out in the members, as if the
// supposed resources were in Enforce.
func (s *Snapshot) leavesOut(q *Query, supposed []string) bool {
	if s.unsupported != (Unsupported{}) || len(q.Resources) > 1 {
		return true
	}
	for _, r := range q.Resources {
		if sh := s.shortageOf(r, q.At, supposed); sh != nil && sh.any {
			return true
		}
		if c, ok := s.resources.of(r); ok && c.hasHTTPActions && !s.noRequests[q.Cluster].IsZero() {
			return true
		}
	}
	return false
}

// effectiveView determines which statements a decision must not count.
type effectiveView struct {
	s  *Snapshot
	at time.Time
	// shortage is the shortage of the current resource, in its own unit and, for an allow by a wildcard, in the
	// wildcard's.
	shortage *shortage
	wildcard *wildcardShortage
	// source is the connection's source, and known the same with the names of which the member has identities.
	source, known source
	// unidentified are the subjects of the connection whose pods have no identity in the member, by name; nil if there
	// are none.
	unidentified map[string]Client
	// labeled reports whether the current resource is protected by labels, which only identities have.
	labeled bool
	// supposed are the resources that are treated as in Enforce; nil if there are none.
	supposed []string
	// noRequests is the reason why the member has no allows of HTTP requests, while such allows are evaluated.
	noRequests message.Message
	// awaitsEnforce reports whether the current allows do not count until their resource is in Enforce.
	awaitsEnforce bool
	// other is the enforcer by which the view decides; nil for Cilium.
	other *otherEnforcer
	// hasOtherClasses reports whether the workload also has resources of classes that another enforcer enforces.
	hasOtherClasses bool
	leftOut         []Refusal
	waiting         []Ref
}

// begin sets the current resource.
func (v *effectiveView) begin(resource string) {
	if v.other != nil {
		v.other.limits = v.s.limitsOf(v, resource)
		return
	}
	v.shortage, v.wildcard = v.s.shortageOf(resource, v.at, v.supposed), nil
	c, ok := v.s.resources.of(resource)
	v.labeled = ok && c.byCilium()
}

// closes reports whether the unit of the current resource does not open the ports of no action. x may be nil.
func (v *effectiveView) closes() bool {
	switch {
	case v == nil:
		return false
	case v.hasOtherClasses:
		return true
	case v.other == nil:
		if v.shortage == nil || !v.shortage.closed {
			return false
		}
		if v.shortage.closedBy != nil {
			v.leftOut = append(v.leftOut, *v.shortage.closedBy)
		}
		return true
	case v.other.limits == nil || v.other.limits.OtherPorts == nil:
		return false
	}
	v.leftOut = append(v.leftOut, *v.other.limits.OtherPorts)
	return true
}

// waits reports whether the allows of a resource in this mode do not count while another resource of the workload is in
// Enforce: an enforcer other than Cilium has no objects that allow for such a resource.
func (v *effectiveView) waits(mode int8, enforce bool) bool {
	return v != nil && v.other != nil && mode != enforcing && enforce
}

// enter sets the current wildcard.
func (v *effectiveView) enter(t *target) {
	v.wildcard = nil
	if v.shortage != nil {
		v.wildcard = v.shortage.wildcards[v.s.wildcardNames()[*t]]
	}
}

// isLeftOut reports whether a statement that matches is left out in the members.
func (v *effectiveView) isLeftOut(number uint32) bool {
	st := v.s.statements[number]
	if v.awaitsEnforce && st.effect == Allow {
		v.waiting = append(v.waiting, st.ref)
		return true
	}
	if !v.noRequests.IsZero() {
		v.leftOut = append(v.leftOut, Refusal{Ref: st.ref, Reason: v1alpha1.RefusedUnsupported,
			Message: message.RefusalRequestsInMember(v.noRequests)})
		return true
	}
	if refused := v.refusals(st); len(refused) > 0 {
		v.leftOut = append(v.leftOut, refused...)
		return true
	}
	if st.effect == Allow && !v.s.reaches(&st.subjects, &v.source) {
		v.leftOut = append(v.leftOut, unknownName(st.ref))
		return true
	}
	if st.effect == Allow && v.unidentified != nil && v.labeled && !v.s.reaches(&st.subjects, &v.known) {
		v.leftOut = append(v.leftOut, v.inOtherMesh(st))
		return true
	}
	return false
}

func (v *effectiveView) isUnidentified(name string) bool {
	_, apart := v.unidentified[name]
	return apart
}

// inOtherMesh returns the refusal of an allow that matches the connection only by subjects without identity in the
// member.
func (v *effectiveView) inOtherMesh(st *statement) Refusal {
	for _, name := range sortedKeys(v.unidentified) {
		if c := v.unidentified[name]; v.s.reaches(&st.subjects, &source{names: []string{name}}) {
			return refusedMesh(st.ref, "", c.Name, c.in)
		}
	}
	return unknownName(st.ref)
}

func unknownName(ref Ref) Refusal {
	return Refusal{Ref: ref, Reason: LeftOutUnknownName, Message: message.RefusalNameUnknown()}
}

func (v *effectiveView) refusals(st *statement) []Refusal {
	if v.other != nil {
		return v.other.refusals(st, &v.source)
	}
	if w := v.wildcard; w != nil && st.effect == Allow {
		if w.unknown {
			return []Refusal{unknownName(st.ref)}
		}
		return w.refused[st.ref]
	}
	if v.shortage != nil {
		return v.shortage.refused[st.ref]
	}
	return nil
}

// reaches reports whether the rules compiled from the subjects match the source.
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

// isKnown reports whether prefixes are expanded to this name.
func (s *Snapshot) isKnown(name string) bool {
	if s.namesUnknown {
		return true
	}
	_, ok := slices.BinarySearch(s.known, name)
	return ok
}

// nameWildcards returns the names of the wildcard units by their targets.
func (s *Snapshot) nameWildcards() map[target]string {
	out := map[target]string{}
	for _, list := range s.index.wildcards {
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

// isNarrow reports whether an allow has a prefix as subject that stands for known names only.
func (s *Snapshot) isNarrow(st *statement) bool {
	return st.effect == Allow && slices.ContainsFunc(st.subjects.stems, func(stem string) bool {
		c, ok := s.subjects.of(stem)
		return !ok || len(stem) != len(c.stem)
	})
}
