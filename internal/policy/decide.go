package policy

import (
	"net/netip"
	"slices"

	"github.com/acp-io/acp/internal/message"
)

// outcome identifies the rule that determines the verdict.
type outcome uint8

const (
	outcomeUnmanaged outcome = iota
	outcomeDenied
	outcomeAllowed
	outcomeOtherPort
	outcomeDefaultDenied
	outcomeAuditDenied
	outcomeAuditDefaultDenied
)

// outcomes contains the verdict and the explanation of each outcome.
var outcomes = [...]struct {
	verdict Verdict
	reason  DecisionReason
}{
	outcomeUnmanaged:          {Unmanaged, ReasonUnmanaged},
	outcomeDenied:             {Denied, ReasonDenied},
	outcomeAllowed:            {Allowed, ReasonAllowed},
	outcomeOtherPort:          {Allowed, ReasonOtherPort},
	outcomeDefaultDenied:      {DefaultDenied, ReasonDefaultDenied},
	outcomeAuditDenied:        {Audited, ReasonAuditDenied},
	outcomeAuditDefaultDenied: {Audited, ReasonAuditDefaultDenied},
}

// Decide returns what the statements mean for one connection or request. It does not consider whether an enforcer can
// express them; see Refusals and Unit.Refused for what is not pushed. It allocates nothing unless several statements
// determine the verdict.
func (s *Snapshot) Decide(q Query) Decision { return s.DecideInto(&q, nil) }

// DecideInto is like Decide, but stores the statements of the decision in into, so that several statements need no
// allocation. The decision is valid until into is used again.
func (s *Snapshot) DecideInto(q *Query, into []Ref) (d Decision) {
	s.decide(&d, q, into, false)
	return d
}

// DecideEnforced is like DecideInto, but treats every resource of the query as in Enforce: it returns what the
// statements alone mean.
func (s *Snapshot) DecideEnforced(q *Query, into []Ref) (d Decision) {
	s.decide(&d, q, into, true)
	return d
}

func (s *Snapshot) decide(d *Decision, q *Query, into []Ref, asEnforced bool) {
	s = s.In(q.Cluster)
	var ids, contested [4]uint32
	var v evaluation
	v.q, v.asEnforced = q, asEnforced
	s.findSource(&v.source, q)
	v.ids = s.subjectIDs(ids[:0], v.source.names)
	if v.source.contested != nil {
		v.contestedIDs = s.subjectIDs(contested[:0], v.source.contested)
	}
	s.writeDecision(d, &v, s.visitNames(&v, q.Resources), q.Resources, into)
}

// writeDecision evaluates the matches for a destination of one class or, if class is nil, of several. It writes through
// a pointer because returning the decision by value is slower than the evaluation.
func (s *Snapshot) writeDecision(d *Decision, v *evaluation, class *resourceClass, resources []string, into []Ref) {
	how, by := v.conclude(class)
	d.Verdict, d.Reason = outcomes[how].verdict, outcomes[how].reason
	switch {
	case by == nil:
	case by.n == 1 || by.n == 2 && by.kept[0] == by.kept[1]:
		i := by.kept[0]
		d.Statements = s.refs[i : i+1 : i+1]
	default:
		d.Statements = s.collectRefs(v, class, resources, into)
	}
}

// visitNames visits the statements about every resource and returns the common class of the resources, or nil if they
// have none or several.
func (s *Snapshot) visitNames(v *evaluation, resources []string) *resourceClass {
	if len(resources) == 1 {
		return s.visitName(v, resources[0])
	}
	// A resource in Enforce affects which statements of the other resources count, so it is looked for first.
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

func (s *Snapshot) visitName(v *evaluation, resource string) *resourceClass {
	if v.effective != nil {
		v.effective.begin(resource)
	}
	if i, ok := s.index.resources.find(resource); ok {
		return s.visitResource(v, i)
	}
	// No statement names the resource and it is not onboarded, so only wildcards can apply.
	var wilds [4]target
	class, _ := s.resources.of(resource)
	mode := observing
	if v.asEnforced {
		mode = enforcing
	}
	s.visit(v, class, &target{}, s.covering(wilds[:0], resource, class), mode)
	return class
}

func (s *Snapshot) visitResource(v *evaluation, i uint32) *resourceClass {
	n := &s.index.nodes[i]
	s.visit(v, n.class, &n.target, s.index.covers[n.covers], s.modeOf(v, i))
	return n.class
}

func (s *Snapshot) modeOf(v *evaluation, i uint32) int8 {
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

// subjectIDs returns the numbers of the names that statements contain, counted from 1.
func (s *Snapshot) subjectIDs(out []uint32, names []string) []uint32 {
	for _, n := range names {
		if i, ok := s.index.subjects.find(n); ok {
			out = append(out, i+1)
		}
	}
	return out
}

// SubjectHandle is the result of looking up a subject's name in one Snapshot.
type SubjectHandle struct {
	name *[1]string
	id   uint32 // number of the name, from 1; 0 if no statement contains it
}

// ResourceHandle is the result of looking up a resource's name in one Snapshot.
type ResourceHandle struct {
	name   *[1]string
	number uint32 // from 1; 0 if no statement contains it and it is not onboarded
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

// DecideResolved is like Decide for one subject and one resource that were looked up before; they replace Subjects and
// Resources of the query. The handles must come from the same Snapshot. See DecideInto for into.
func (s *Snapshot) DecideResolved(subject SubjectHandle, resource ResourceHandle, q *Query, into []Ref) (d Decision) {
	if in := s.In(q.Cluster); in != s {
		return in.DecideResolved(in.ResolveSubject(subject.name[0]), in.ResolveResource(resource.name[0]), q, into)
	}
	ids := [1]uint32{subject.id}
	var v evaluation
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
	s.writeDecision(&d, &v, class, resource.name[:], into)
	return d
}

// source describes where a connection comes from.
type source struct {
	names []string
	// contested are names that count for denies only.
	contested []string
	address   netip.Addr
}

func (s *Snapshot) findSource(src *source, q *Query) {
	src.names = q.Subjects
	if !q.Source.IsValid() {
		return
	}
	src.address = normalAddress(q.Source)
	switch owners := s.external.lookup(src.address); len(owners) {
	case 0:
	case 1:
		if owners[0] != noOwner {
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

// evaluation is the intermediate state of one decision.
type evaluation struct {
	q                 *Query
	source            source
	ids, contestedIDs []uint32 // numbers of subjects, from 1

	enforce, audit bool
	// named reports whether an action of a class contains the port.
	named bool
	// asEnforced treats every resource as in Enforce.
	asEnforced bool
	// effective, if set, excludes statements that the members do not have.
	effective *effectiveView

	// allows contains the allows that count, denies the denies on resources in Enforce, and auditDenies the denies on
	// resources in Audit.
	allows, denies, auditDenies matches
}

// nextPage prepares for another visit, which keeps the matches that follow those kept before.
func (v *evaluation) nextPage() {
	for _, m := range [...]*matches{&v.denies, &v.auditDenies, &v.allows} {
		m.skip, m.n = m.skip+len(m.kept), 0
	}
}

// matches collects statement numbers. It keeps only a few at a time, so that a decision needs no memory; visiting again
// finds the others.
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

// criteria are the properties of a connection that determine which entries of one target match.
type criteria struct {
	// actions are the action masks by which an allow matches and counts (index 0), and by which a deny matches (index
	// 1).
	actions [2]uint32
	denies  *matches
}

// visit evaluates the statements about one resource: those of its exact name, whose target may be empty, and those of
// wildcards. An allow of HTTP requests on a resource in Audit does not count while another resource of the workload is
// in Enforce: a dataplane that filters requests would drop others because of the allow in Audit, and one that does not
// would let them in to the closed resource.
func (s *Snapshot) visit(v *evaluation, class *resourceClass, exact *target, wilds []target, mode int8) {
	v.enforce = v.enforce || mode == enforcing
	v.audit = v.audit || mode == auditing
	if class == nil {
		return // without a class there are no actions, so no statement matches
	}
	if class.places != nil && !v.asEnforced && !class.isPlacedIn(s, v.q.Cluster) {
		return // the member has no unit of the class
	}
	is := class.actionsAt(v.q)
	v.named = v.named || is.named
	l := criteria{actions: [2]uint32{is.allow, is.deny}, denies: &v.denies}
	waits := v.effective.waits(mode, v.enforce)
	if waits {
		v.effective.awaitsEnforce = true
	}
	switch mode {
	case observing: // only allows of wildcards count
		l.actions[1] = 0
	case auditing:
		l.denies = &v.auditDenies
		if v.enforce && !waits {
			l.actions[0] = is.whole
		}
		s.visitTarget(v, exact, &l)
		if v.effective != nil && v.enforce && !waits {
			l.actions = [2]uint32{is.allow &^ is.whole, 0}
			v.effective.awaitsEnforce = true
			s.visitTarget(v, exact, &l)
			v.effective.awaitsEnforce = false
			l.actions[1] = is.deny
		}
		l.actions[0] = is.allow
	case enforcing:
		if v.effective != nil && v.effective.other == nil && class.hasHTTPActions && !s.noRequests[v.q.Cluster].IsZero() {
			l.actions[0] = is.whole
			s.visitTarget(v, exact, &l)
			l.actions = [2]uint32{is.allow &^ is.whole, 0}
			v.effective.noRequests = s.noRequests[v.q.Cluster]
		}
		s.visitTarget(v, exact, &l)
		if v.effective != nil {
			v.effective.noRequests = message.Message{}
		}
		l.actions = [2]uint32{is.allow, is.deny}
	}
	for i := range wilds {
		if v.effective != nil {
			v.effective.enter(&wilds[i])
		}
		s.visitTarget(v, &wilds[i], &l)
	}
	if waits {
		v.effective.awaitsEnforce = false
	}
}

func (s *Snapshot) visitTarget(v *evaluation, t *target, l *criteria) {
	if t.table < t.scanned {
		s.visitPairs(v, t, v.ids, l)
		if len(v.contestedIDs) > 0 {
			denies := *l
			denies.actions[0] = 0
			s.visitPairs(v, t, v.contestedIDs, &denies)
		}
	}
	for i := t.scanned; i < t.end; i++ {
		e := &s.index.entries[i]
		if l.matches(e) {
			st := s.statements[e.statement&numberMask]
			if st.inForce(v.q.At) && v.source.isOneOf(&st.subjects, st.effect) {
				v.count(e.statement, l)
			}
		}
	}
}

// visitPairs evaluates the statements about the target that have one of the exact subjects.
func (s *Snapshot) visitPairs(v *evaluation, t *target, subjects []uint32, l *criteria) {
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

func (c *criteria) matches(e *entry) bool { return e.actions&c.actions[e.statement>>denyBit] != 0 }

// count records a matching statement.
func (v *evaluation) count(statement uint32, l *criteria) {
	if v.effective != nil && v.effective.isLeftOut(statement&numberMask) {
		return
	}
	if statement&denyFlag == 0 {
		v.allows.add(statement & numberMask)
	} else {
		l.denies.add(statement & numberMask)
	}
}

// conclude returns the outcome and the matches that determined it. If an allow lets the connection through but a deny
// would apply in Enforce, the outcome is audited, because the connection would break when the resource changes to
// Enforce.
func (v *evaluation) conclude(class *resourceClass) (outcome, *matches) {
	switch {
	case v.denies.n > 0:
		return outcomeDenied, &v.denies
	case v.allows.n > 0 && v.auditDenies.n > 0:
		return outcomeAuditDenied, &v.auditDenies
	case v.allows.n > 0:
		return outcomeAllowed, &v.allows
	case !v.enforce && !v.audit:
		return outcomeUnmanaged, nil
	case class != nil && class.opensOtherPorts && !v.named && !v.effective.closes():
		return outcomeOtherPort, nil
	case v.enforce:
		return outcomeDefaultDenied, nil
	case v.auditDenies.n > 0:
		return outcomeAuditDenied, &v.auditDenies
	default:
		return outcomeAuditDefaultDenied, nil
	}
}

// collectRefs returns the refs of several matching statements, sorted. The evaluation keeps only the first ones;
// visiting again finds the others.
func (s *Snapshot) collectRefs(v *evaluation, class *resourceClass, resources []string, into []Ref) []Ref {
	var buffer [16]uint32
	numbers := buffer[:0]
	_, by := v.conclude(class)
	for total := by.n; ; {
		numbers = append(numbers, by.kept[:min(len(by.kept), total-by.skip)]...)
		if by.skip+len(by.kept) >= total {
			break
		}
		v.nextPage()
		s.visitNames(v, resources)
	}
	slices.Sort(numbers) // statements are numbered by ref
	out := into[:0]
	for i, number := range numbers {
		if i == 0 || number != numbers[i-1] {
			out = append(out, s.refs[number])
		}
	}
	if s.hasDuplicateRefs {
		out = slices.Compact(out)
	}
	return out
}
