package policy

import (
	"net/netip"
	"slices"

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
func (s *Snapshot) Decide(q Query) Decision { return s.DecideInto(&q, nil) }

// DecideInto is Decide with memory for the statements, which the decision may use: several of them then need no
// allocation either, and the decision is valid until the memory is used again.
func (s *Snapshot) DecideInto(q *Query, into []Ref) Decision {
	var ids, contested [8]uint32
	v := verdict{q: q, source: s.sourceOf(q)}
	v.ids, v.contestedIDs = s.subjectIDs(ids[:0], v.source.names), s.subjectIDs(contested[:0], v.source.contested)
	d, by := v.decide(s.visitNames(&v, q.Resources))
	if by != nil {
		if d.Statements = s.one(by); d.Statements == nil {
			d.Statements = s.all(into, v, q.Resources, nil)
		}
	}
	return d
}

// visitNames looks at the statements about every resource and returns their class; nil: they have no or several.
func (s *Snapshot) visitNames(v *verdict, resources []string) *resourceClass {
	var class *resourceClass
	several := false
	for _, r := range resources {
		c := s.visitName(v, r)
		several = several || c == nil || class != nil && class != c
		class = c
	}
	if several {
		return nil
	}
	return class
}

func (s *Snapshot) visitName(v *verdict, resource string) *resourceClass {
	if n := s.index.nodes[resource]; n != nil {
		s.visitNode(v, n)
		return n.class
	}
	// In no statement and not onboarded: only wildcards can be about it.
	c, ok := s.resources.of(resource)
	if !ok {
		return nil
	}
	var wilds [4]*target
	s.visitClass(v, nil, s.covering(wilds[:0], resource, c), c, v1alpha1.ModeObserve)
	return c
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
	d, by := v.decide(resource.node.class)
	if by != nil {
		if d.Statements = s.one(by); d.Statements == nil {
			d.Statements = s.all(nil, v, nil, resource.node)
		}
	}
	return d
}

// source is who a query comes from.
type source struct {
	names []string
	// contested are names that only denies may use.
	contested []string
	address   netip.Addr
}

func (s *Snapshot) sourceOf(q *Query) source {
	if !q.Source.IsValid() {
		return source{names: q.Subjects}
	}
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
	// named tells that an action of a class has the port.
	named bool

	// denies on enforced resources, denies on audited ones, and allows that count.
	denies, auditDenies, allows matches
}

// again prepares for another look, which keeps the matches after those that were kept before.
func (v *verdict) again() {
	for _, m := range [...]*matches{&v.denies, &v.auditDenies, &v.allows} {
		m.skip, m.n = m.skip+len(m.kept), 0
	}
}

// matches are numbers of statements. Only a few are kept at a time, so that a decision needs no memory; the rest is
// found by looking again.
type matches struct {
	skip, n int
	kept    [4]uint32
}

func (m *matches) add(number uint32) {
	if i := m.n - m.skip; i >= 0 && i < len(m.kept) {
		m.kept[i] = number
	}
	m.n++
}

// visitNode looks at the statements about one resource.
func (s *Snapshot) visitNode(v *verdict, n *node) {
	mode := n.fixed
	if mode == "" {
		mode = n.protection.mode(v.q.Cluster, v.q.At)
	}
	s.visitClass(v, &n.target, n.wilds, n.class, mode)
}

func (s *Snapshot) visitClass(v *verdict, exact *target, wilds []*target, c *resourceClass, mode v1alpha1.Mode) {
	v.enforce = v.enforce || mode == v1alpha1.ModeEnforce
	v.audit = v.audit || mode == v1alpha1.ModeAudit
	if c == nil {
		return // without a class it has no actions, so no statement matches
	}
	allow, deny, named := c.actionsAt(v.q)
	v.named = v.named || named
	if allow|deny == 0 {
		return
	}
	l := look{allow: allow, deny: deny, mode: mode}
	if exact != nil {
		s.visitTarget(v, exact, l)
	}
	l.byWildcard = true
	for _, t := range wilds {
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

// decide weighs what was found, for a destination of one class or, with nil, of several. A deny that only Audit keeps
// from counting makes the connection audited even when an allow lets it through now: it is what would break on the way
// to Enforce. It returns the matches that decided, too.
func (v *verdict) decide(class *resourceClass) (Decision, *matches) {
	switch {
	case v.denies.n > 0:
		return Decision{Word: Denied, Reason: reasonDenied}, &v.denies
	case v.allows.n > 0 && v.auditDenies.n > 0:
		return Decision{Word: Audited, Reason: reasonAuditDenied}, &v.auditDenies
	case v.allows.n > 0:
		return Decision{Word: Allowed, Reason: reasonAllowed}, &v.allows
	case !v.enforce && !v.audit:
		return Decision{Word: Unmanaged, Reason: reasonUnmanaged}, nil
	case class != nil && class.opensOtherPorts && !v.named:
		return Decision{Word: Allowed, Reason: reasonOtherPort}, nil
	case v.enforce:
		return Decision{Word: DefaultDenied, Reason: reasonDefaultDenied}, nil
	case v.auditDenies.n > 0:
		return Decision{Word: Audited, Reason: reasonAuditDenied}, &v.auditDenies
	default:
		return Decision{Word: Audited, Reason: reasonAuditDefaultDenied}, nil
	}
}

// one names the only statement, or is nil.
func (s *Snapshot) one(m *matches) []Ref {
	if m.n == 1 || m.n == 2 && m.kept[0] == m.kept[1] {
		i := m.kept[0]
		return s.refs[i : i+1 : i+1]
	}
	return nil
}

// all names several statements, sorted. The verdict keeps only the first; the others are found by looking again.
func (s *Snapshot) all(into []Ref, v verdict, resources []string, resolved *node) []Ref {
	var buffer [16]uint32
	numbers := buffer[:0]
	_, by := v.decide(nil)
	for total := by.n; ; {
		numbers = append(numbers, by.kept[:min(len(by.kept), total-by.skip)]...)
		if by.skip+len(by.kept) >= total {
			break
		}
		v.again()
		s.visitNames(&v, resources)
		if resolved != nil {
			s.visitNode(&v, resolved)
		}
	}
	slices.Sort(numbers) // statements are numbered by ref
	out := into[:0]
	for i, number := range numbers {
		if i == 0 || number != numbers[i-1] {
			out = append(out, s.refs[number])
		}
	}
	return slices.Compact(out)
}
