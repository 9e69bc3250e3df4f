package policy

import (
	"net/netip"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Sentences for Decision.Reason, one for each way to a word.
const (
	reasonDenied             = "a deny matches, and its resource is enforced"
	reasonAllowed            = "an allow matches"
	reasonOtherPort          = "the resource's class opens the ports that none of its actions names"
	reasonDefaultDenied      = "nothing allows it, and the resource is enforced"
	reasonAuditDenied        = "let through because of Audit: in Enforce, a deny would refuse it"
	reasonAuditDefaultDenied = "let through because of Audit: in Enforce, nothing would allow it"
	reasonUnmanaged          = "no resource is in Audit or Enforce"
)

// Decide says what the statements mean for one connection or request. It does not ask whether an enforcer can express
// them: see Refusals and Unit.Refused for what is not pushed. It allocates nothing unless several statements decide.
func (s *Snapshot) Decide(q Query) Decision {
	var ids, contested [8]uint32
	v := verdict{q: &q, source: s.sourceOf(&q)}
	v.ids, v.contestedIDs = s.subjectIDs(ids[:0], v.source.names), s.subjectIDs(contested[:0], v.source.contested)
	for _, r := range q.Resources {
		if n := s.index.nodes[r]; n != nil {
			s.visitNode(&v, n)
			continue
		}
		// In no statement and not onboarded: only wildcards can be about it.
		var n node
		var wilds [4]*target
		n.class, _ = s.resources.of(r)
		n.wilds, n.fixed = s.covering(wilds[:0], r, n.class), v1alpha1.ModeObserve
		s.visitNode(&v, &n)
	}
	return s.decision(&v)
}

func (s *Snapshot) subjectIDs(out []uint32, names []string) []uint32 {
	for _, n := range names {
		if id, ok := s.index.subjects[n]; ok {
			out = append(out, id)
		}
	}
	return out
}

// SubjectHandle is a subject's name as one Snapshot knows it.
type SubjectHandle struct {
	name  string
	id    uint32
	known bool
}

// ResourceHandle is a resource's name as one Snapshot knows it.
type ResourceHandle struct{ node *node }

// ResolveSubject looks a name up for DecideResolved of the same Snapshot.
func (s *Snapshot) ResolveSubject(name string) SubjectHandle {
	id, ok := s.index.subjects[name]
	return SubjectHandle{name: name, id: id, known: ok}
}

// ResolveResource looks a name up for DecideResolved of the same Snapshot.
func (s *Snapshot) ResolveResource(name string) ResourceHandle {
	if n := s.index.nodes[name]; n != nil {
		return ResourceHandle{n}
	}
	n := &node{fixed: v1alpha1.ModeObserve}
	n.class, _ = s.resources.of(name)
	n.wilds = s.covering(nil, name, n.class)
	return ResourceHandle{n}
}

// DecideResolved is Decide for one subject and one resource that were looked up beforehand, in place of the Subjects
// and Resources of the query. The handles must come from the same Snapshot.
func (s *Snapshot) DecideResolved(subject SubjectHandle, resource ResourceHandle, q *Query) Decision {
	names, ids := [1]string{subject.name}, [1]uint32{subject.id}
	v := verdict{q: q, source: source{names: names[:]}}
	if subject.known {
		v.ids = ids[:]
	}
	s.visitNode(&v, resource.node)
	return s.decision(&v)
}

// source is who a query comes from.
type source struct {
	names []string
	// contested are names that only denies may use.
	contested []string
	address   netip.Addr
}

func (s *Snapshot) sourceOf(q *Query) source {
	src := source{names: q.Subjects, address: plain(q.Source)}
	switch owners := s.external.lookup(src.address); len(owners) {
	case 0:
	case 1:
		src.names = append(src.names[:len(src.names):len(src.names)], owners[0])
	default:
		src.contested = owners
	}
	return src
}

func (src *source) isOneOf(subjects *subjectSet, effect Effect) bool {
	if subjects.any || subjects.hasAddress(src.address) {
		return true
	}
	for _, n := range src.names {
		if subjects.hasName(n) {
			return true
		}
	}
	if effect == Deny {
		for _, n := range src.contested {
			if subjects.hasName(n) {
				return true
			}
		}
	}
	return false
}

// verdict gathers what matches.
type verdict struct {
	q                 *Query
	source            source
	ids, contestedIDs []uint32

	enforce, audit bool
	// class is that of the destination; several tells that there is more than one, or a resource without.
	class   *resourceClass
	several bool
	// named tells that an action of the class has the port.
	named bool

	// denies on enforced resources, denies on audited ones, and allows that count.
	denies, auditDenies, allows matches
}

// matches are numbers of statements, the first few without allocation.
type matches struct {
	n     int
	first [2]uint32
	more  []uint32
}

func (m *matches) add(number uint32) {
	if m.n < len(m.first) {
		m.first[m.n] = number
	} else {
		m.more = append(m.more, number)
	}
	m.n++
}

// visitNode looks at the statements about one resource.
func (s *Snapshot) visitNode(v *verdict, n *node) {
	mode := n.fixed
	if mode == "" {
		mode = n.protection.mode(v.q.Cluster, v.q.At)
	}
	v.enforce = v.enforce || mode == v1alpha1.ModeEnforce
	v.audit = v.audit || mode == v1alpha1.ModeAudit
	v.several = v.several || n.class == nil || v.class != nil && v.class != n.class
	v.class = n.class
	if n.class == nil {
		return // without a class it has no actions, so no statement matches
	}
	allow, deny, named := n.class.actionsAt(v.q)
	v.named = v.named || named
	if allow|deny == 0 {
		return
	}
	l := look{allow: allow, deny: deny, mode: mode}
	if n.id != 0 {
		s.visitTarget(v, &n.target, l)
	}
	l.byWildcard = true
	for _, t := range n.wilds {
		s.visitTarget(v, t, l)
	}
}

// look is what matters of a connection for the statements of one target.
type look struct {
	allow, deny uint32
	mode        v1alpha1.Mode
	byWildcard  bool
}

func (s *Snapshot) visitTarget(v *verdict, t *target, l look) {
	for _, id := range v.ids {
		s.visitPair(v, t, id, l)
	}
	for _, id := range v.contestedIDs {
		denies := l
		denies.allow = 0
		s.visitPair(v, t, id, denies)
	}
	for _, e := range t.broad {
		if l.matches(e) {
			st := s.statements[e.statement&numberMask]
			if st.inForce(v.q.At) && v.source.isOneOf(&st.subjects, st.effect) {
				v.count(e.statement, l)
			}
		}
	}
}

func (s *Snapshot) visitPair(v *verdict, t *target, subject uint32, l look) {
	if t.subjects != nil && t.subjects[subject/64]&(1<<(subject%64)) == 0 {
		return
	}
	pairs := s.index.pairs
	key := pairKey(t.id, subject)
	for i := s.index.slot(key); pairs[i].key != 0; i = (i + 1) & (len(pairs) - 1) {
		p := &pairs[i]
		if p.key != key || !l.matches(p.entry) {
			continue
		}
		if p.statement&boundedFlag != 0 && !s.statements[p.statement&numberMask].inForce(v.q.At) {
			continue
		}
		v.count(p.statement, l)
	}
}

func (l *look) matches(e entry) bool {
	if e.statement&denyFlag != 0 {
		return e.actions&l.deny != 0
	}
	return e.actions&l.allow != 0
}

// count keeps a matching statement where it counts.
func (v *verdict) count(statement uint32, l look) {
	number := statement & numberMask
	switch {
	case statement&denyFlag == 0:
		if l.byWildcard || l.mode != v1alpha1.ModeObserve {
			v.allows.add(number)
		}
	case l.mode == v1alpha1.ModeEnforce:
		v.denies.add(number)
	case l.mode == v1alpha1.ModeAudit:
		v.auditDenies.add(number)
	}
}

// decision weighs what was found. A deny that only Audit keeps from counting makes the connection audited even when an
// allow lets it through now: it is what would break on the way to Enforce.
func (s *Snapshot) decision(v *verdict) Decision {
	switch {
	case v.denies.n > 0:
		return Decision{Word: Denied, Reason: reasonDenied, Statements: s.refsOf(&v.denies)}
	case v.allows.n > 0 && v.auditDenies.n > 0:
		return Decision{Word: Audited, Reason: reasonAuditDenied, Statements: s.refsOf(&v.auditDenies)}
	case v.allows.n > 0:
		return Decision{Word: Allowed, Reason: reasonAllowed, Statements: s.refsOf(&v.allows)}
	case !v.enforce && !v.audit:
		return Decision{Word: Unmanaged, Reason: reasonUnmanaged}
	case v.otherPortOpen():
		return Decision{Word: Allowed, Reason: reasonOtherPort}
	case v.enforce:
		return Decision{Word: DefaultDenied, Reason: reasonDefaultDenied}
	case v.auditDenies.n > 0:
		return Decision{Word: Audited, Reason: reasonAuditDenied, Statements: s.refsOf(&v.auditDenies)}
	default:
		return Decision{Word: Audited, Reason: reasonAuditDefaultDenied}
	}
}

// refsOf names the statements, sorted. One needs no allocation; its slice must not be appended to in place.
func (s *Snapshot) refsOf(m *matches) []Ref {
	if m.n == 1 || m.n == 2 && m.first[0] == m.first[1] {
		i := m.first[0]
		return s.refs[i : i+1 : i+1]
	}
	out := make([]Ref, 0, m.n)
	for _, i := range m.first {
		out = append(out, s.refs[i])
	}
	for _, i := range m.more {
		out = append(out, s.refs[i])
	}
	return sortedRefs(out)
}

// otherPortOpen tells whether the destination's only class opens the port for everyone.
func (v *verdict) otherPortOpen() bool {
	return v.class != nil && !v.several && v.class.opensOtherPorts && !v.named
}
