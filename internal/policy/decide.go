package policy

import (
	"net/netip"
	"slices"
)

// outcome is a way to a word.
type outcome uint8

const (
	ruledUnmanaged outcome = iota
	ruledDenied
	ruledAllowed
	ruledOtherPort
	ruledDefaultDenied
	ruledAuditDenied
	ruledAuditDefaultDenied
)

// rulings has the word and the sentence for people of each.
var rulings = [...]struct {
	word   Verdict
	reason string
}{
	ruledUnmanaged:          {Unmanaged, "no resource is in Audit or Enforce"},
	ruledDenied:             {Denied, "a deny matches, and its resource is enforced"},
	ruledAllowed:            {Allowed, "an allow matches"},
	ruledOtherPort:          {Allowed, "the resource's class opens the ports that none of its actions names"},
	ruledDefaultDenied:      {DefaultDenied, "nothing allows it, and the resource is enforced"},
	ruledAuditDenied:        {Audited, "let through because of Audit: in Enforce, a deny would refuse it"},
	ruledAuditDefaultDenied: {Audited, "let through because of Audit: in Enforce, nothing would allow it"},
}

// Decide says what the statements mean for one connection or request. It does not ask whether an enforcer can express
// them: see Refusals and Unit.Refused for what is not pushed. It allocates nothing unless several statements decide.
func (s *Snapshot) Decide(q Query) Decision { return s.DecideInto(&q, nil) }

// DecideInto is Decide with memory for the statements, which the decision may use: several of them then need no
// allocation either, and the decision is valid until the memory is used again.
func (s *Snapshot) DecideInto(q *Query, into []Ref) (d Decision) {
	s.decide(&d, q, into, false)
	return d
}

// DecideEnforced is DecideInto as if every resource of the query were in Enforce: what the statements alone say.
func (s *Snapshot) DecideEnforced(q *Query, into []Ref) (d Decision) {
	s.decide(&d, q, into, true)
	return d
}

func (s *Snapshot) decide(d *Decision, q *Query, into []Ref, asEnforced bool) {
	var ids, contested [4]uint32
	var v verdict
	v.q, v.asEnforced = q, asEnforced
	s.findSource(&v.source, q)
	v.ids = s.subjectIDs(ids[:0], v.source.names)
	if v.source.contested != nil {
		v.contestedIDs = s.subjectIDs(contested[:0], v.source.contested)
	}
	s.decision(d, &v, s.visitNames(&v, q.Resources), q.Resources, into)
}

// decision weighs what was found about resources, for a destination of one class or, with nil, of several. It writes where
// the caller has the answer, because handing that on from one to the other is slower than the weighing.
func (s *Snapshot) decision(d *Decision, v *verdict, class *resourceClass, resources []string, into []Ref) {
	how, by := v.weigh(class)
	d.Verdict, d.Reason = rulings[how].word, rulings[how].reason
	switch {
	case by == nil:
	case by.n == 1 || by.n == 2 && by.kept[0] == by.kept[1]:
		i := by.kept[0]
		d.Statements = s.refs[i : i+1 : i+1]
	default:
		d.Statements = s.all(v, class, resources, into)
	}
}

// visitNames looks at the statements about every resource and returns their class; nil: they have no or several.
func (s *Snapshot) visitNames(v *verdict, resources []string) *resourceClass {
	if len(resources) == 1 {
		return s.visitName(v, resources[0])
	}
	// What one resource enforces decides what counts for the others.
	for _, r := range resources {
		if i, ok := s.index.resources.find(r); ok && s.modeOf(v, i) == enforcing {
			v.enforce = true
		}
	}
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
	if v.effective != nil {
		v.effective.begin(resource)
	}
	if i, ok := s.index.resources.find(resource); ok {
		return s.visitResource(v, i)
	}
	// In no statement and not onboarded: only wildcards can be about it.
	var wilds [4]target
	class, _ := s.resources.of(resource)
	mode := observing
	if v.asEnforced {
		mode = enforcing
	}
	s.visit(v, class, &target{}, s.covering(wilds[:0], resource, class), mode)
	return class
}

func (s *Snapshot) visitResource(v *verdict, i uint32) *resourceClass {
	n := &s.index.nodes[i]
	s.visit(v, n.class, &n.target, s.index.covers[n.covers], s.modeOf(v, i))
	return n.class
}

func (s *Snapshot) modeOf(v *verdict, i uint32) int8 {
	if v.asEnforced {
		return enforcing
	}
	if c := s.index.nodes[i].class; c != nil && c.places != nil && !c.isPlacedIn(s, v.q.Cluster) {
		return observing
	}
	if mode := s.index.nodes[i].mode; mode != dependsMode {
		return mode
	}
	return strictness(s.index.protections[i].mode(v.q.Cluster, v.q.At))
}

// subjectIDs are the numbers of the names that statements have, from 1.
func (s *Snapshot) subjectIDs(out []uint32, names []string) []uint32 {
	for _, n := range names {
		if i, ok := s.index.subjects.find(n); ok {
			out = append(out, i+1)
		}
	}
	return out
}

// SubjectHandle is a subject's name as one Snapshot knows it.
type SubjectHandle struct {
	name *[1]string
	id   uint32 // its number, from 1; 0: no statement has it
}

// ResourceHandle is a resource's name as one Snapshot knows it.
type ResourceHandle struct {
	name   *[1]string
	number uint32 // from 1; 0: no statement has it, and it is not onboarded
}

// ResolveSubject looks a name up for DecideResolved of the same Snapshot.
func (s *Snapshot) ResolveSubject(name string) SubjectHandle {
	h := SubjectHandle{name: &[1]string{name}}
	if i, ok := s.index.subjects.find(name); ok {
		h.id = i + 1
	}
	return h
}

// ResolveResource looks a name up for DecideResolved of the same Snapshot.
func (s *Snapshot) ResolveResource(name string) ResourceHandle {
	h := ResourceHandle{name: &[1]string{name}}
	if i, ok := s.index.resources.find(name); ok {
		h.number = i + 1
	}
	return h
}

// DecideResolved is Decide for one subject and one resource that were looked up beforehand, in place of the Subjects
// and Resources of the query. The handles must come from the same Snapshot; into is as for DecideInto.
func (s *Snapshot) DecideResolved(subject SubjectHandle, resource ResourceHandle, q *Query, into []Ref) (d Decision) {
	ids := [1]uint32{subject.id}
	var v verdict
	v.q, v.source.names = q, subject.name[:]
	if subject.id != 0 {
		v.ids = ids[:]
	}
	var class *resourceClass
	if resource.number != 0 {
		class = s.visitResource(&v, resource.number-1)
	} else {
		class = s.visitName(&v, resource.name[0])
	}
	s.decision(&d, &v, class, resource.name[:], into)
	return d
}

// source is who a query comes from.
type source struct {
	names []string
	// contested are names that only denies may use.
	contested []string
	address   netip.Addr
}

func (s *Snapshot) findSource(src *source, q *Query) {
	src.names = q.Subjects
	if !q.Source.IsValid() {
		return
	}
	src.address = plain(q.Source)
	switch owners := s.external.lookup(src.address); len(owners) {
	case 0:
	case 1:
		if owners[0] != nobody {
			src.names = append(q.Subjects[:len(q.Subjects):len(q.Subjects)], owners[0])
		}
	default:
		src.contested = owners
	}
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
	ids, contestedIDs []uint32 // of subjects, from 1

	enforce, audit bool
	// named tells that an action of a class has the port.
	named bool
	// asEnforced: every resource counts as enforced.
	asEnforced bool
	// effective is set when what the members lack must not count.
	effective *effectiveView

	// allows that count, denies on enforced resources, and denies on audited ones.
	allows, denies, auditDenies matches
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

// look is what of a connection matters for the statements of one target.
type look struct {
	// actions are those by which an allow matches and counts, and a deny.
	actions [2]uint32
	denies  *matches
}

// visit looks at the statements about one resource: those of its name, which may be in none, and those of wildcards. An
// allow of requests on an audited resource does not count while another resource enforces: a dataplane that looked at the
// requests would drop others because of Audit, and one that did not would let them into what is closed.
func (s *Snapshot) visit(v *verdict, class *resourceClass, exact *target, wilds []target, mode int8) {
	v.enforce = v.enforce || mode == enforcing
	v.audit = v.audit || mode == auditing
	if class == nil {
		return // without a class it has no actions, so no statement matches
	}
	if class.places != nil && !v.asEnforced && !class.isPlacedIn(s, v.q.Cluster) {
		return // the member has no unit of the class
	}
	is := class.actionsAt(v.q)
	v.named = v.named || is.named
	l := look{actions: [2]uint32{is.allow, is.deny}, denies: &v.denies}
	switch mode {
	case observing: // only allows of wildcards count
		l.actions[1] = 0
	case auditing:
		l.denies = &v.auditDenies
		if v.enforce {
			l.actions[0] = is.whole
		}
		s.visitTarget(v, exact, &l)
		if v.effective != nil && v.enforce {
			l.actions = [2]uint32{is.allow &^ is.whole, 0}
			v.effective.waits = true
			s.visitTarget(v, exact, &l)
			v.effective.waits = false
			l.actions[1] = is.deny
		}
		l.actions[0] = is.allow
	case enforcing:
		if v.effective != nil && class.judgesRequests && s.noRequests[v.q.Cluster] != "" {
			l.actions[0] = is.whole
			s.visitTarget(v, exact, &l)
			l.actions = [2]uint32{is.allow &^ is.whole, 0}
			v.effective.noRequests = s.noRequests[v.q.Cluster]
		}
		s.visitTarget(v, exact, &l)
		if v.effective != nil {
			v.effective.noRequests = ""
		}
		l.actions = [2]uint32{is.allow, is.deny}
	}
	for i := range wilds {
		if v.effective != nil {
			v.effective.enter(&wilds[i])
		}
		s.visitTarget(v, &wilds[i], &l)
	}
}

func (s *Snapshot) visitTarget(v *verdict, t *target, l *look) {
	if t.table < t.broad {
		s.visitPairs(v, t, v.ids, l)
		if len(v.contestedIDs) > 0 {
			denies := *l
			denies.actions[0] = 0
			s.visitPairs(v, t, v.contestedIDs, &denies)
		}
	}
	for i := t.broad; i < t.end; i++ {
		e := &s.index.entries[i]
		if l.matches(e) {
			st := s.statements[e.statement&numberMask]
			if st.inForce(v.q.At) && v.source.isOneOf(&st.subjects, st.effect) {
				v.count(e.statement, l)
			}
		}
	}
}

// visitPairs looks at the statements about the target that have one of the exact subjects.
func (s *Snapshot) visitPairs(v *verdict, t *target, subjects []uint32, l *look) {
	for _, subject := range subjects {
		for i := t.slot(subject); ; i = t.after(i) {
			e := &s.index.entries[i]
			if e.subject == 0 {
				break
			}
			if e.subject == subject && l.matches(e) && (e.statement&boundedFlag == 0 || s.statements[e.statement&numberMask].inForce(v.q.At)) {
				v.count(e.statement, l)
			}
		}
	}
}

func (l *look) matches(e *entry) bool { return e.actions&l.actions[e.statement>>denyBit] != 0 }

// count keeps a matching statement.
func (v *verdict) count(statement uint32, l *look) {
	if v.effective != nil && v.effective.leaves(statement&numberMask) {
		return
	}
	if statement&denyFlag == 0 {
		v.allows.add(statement & numberMask)
	} else {
		l.denies.add(statement & numberMask)
	}
}

// weigh says what follows from the matches, and which of them decided. A deny that only Audit keeps from counting makes the
// connection audited even when an allow lets it through now: it is what would break on the way to Enforce.
func (v *verdict) weigh(class *resourceClass) (outcome, *matches) {
	switch {
	case v.denies.n > 0:
		return ruledDenied, &v.denies
	case v.allows.n > 0 && v.auditDenies.n > 0:
		return ruledAuditDenied, &v.auditDenies
	case v.allows.n > 0:
		return ruledAllowed, &v.allows
	case !v.enforce && !v.audit:
		return ruledUnmanaged, nil
	case class != nil && class.opensOtherPorts && !v.named && !v.effective.closes():
		return ruledOtherPort, nil
	case v.enforce:
		return ruledDefaultDenied, nil
	case v.auditDenies.n > 0:
		return ruledAuditDenied, &v.auditDenies
	default:
		return ruledAuditDefaultDenied, nil
	}
}

// all names several statements, sorted. The verdict keeps only the first; the others are found by looking again.
func (s *Snapshot) all(v *verdict, class *resourceClass, resources []string, into []Ref) []Ref {
	var buffer [16]uint32
	numbers := buffer[:0]
	_, by := v.weigh(class)
	for total := by.n; ; {
		numbers = append(numbers, by.kept[:min(len(by.kept), total-by.skip)]...)
		if by.skip+len(by.kept) >= total {
			break
		}
		v.again()
		s.visitNames(v, resources)
	}
	slices.Sort(numbers) // statements are numbered by ref
	out := into[:0]
	for i, number := range numbers {
		if i == 0 || number != numbers[i-1] {
			out = append(out, s.refs[number])
		}
	}
	if s.doubles {
		out = slices.Compact(out)
	}
	return out
}
