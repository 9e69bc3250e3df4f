package policy

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Snapshot answers queries about one state of the objects. It never changes and is safe for concurrent use.
type Snapshot struct {
	resources classes[*resourceClass]
	subjects  classes[*subjectClass]
	protected map[string]*protection
	// unclassed are the resources in Enforce that no class covers, sorted.
	unclassed []string
	// protectors are the ProtectedResources by name, from which protected is made.
	protectors []*v1alpha1.ProtectedResource
	external   addresses

	// parsed contains the statements of each policy; statements contains all of them, by policy and sid.
	parsed     map[*v1alpha1.AccessControlPolicy][]*statement
	statements []*statement
	// refs are the refs of the statements, so that a decision by one statement needs no allocation.
	refs []Ref
	// hasDuplicateRefs reports whether two statements have the same ref, which API validation rejects.
	hasDuplicateRefs bool
	index            index

	// wildUnits contains the allows of each wildcard unit, by the unit's name.
	wildUnits map[string][]*statement
	// known are the names that prefixes stand for, sorted.
	known   []string
	members int
	// fleet are the members, sorted by name. several reports whether they are in more than one cluster mesh.
	fleet   []Cluster
	several bool
	// wholeFits reports for each subject class, in the order of subjects.all, whether an allow of the whole class would
	// fit in every member.
	wholeFits []bool
	// namesUnknown and clusters are taken from the input. narrow reports whether an allow has a prefix as subject that
	// stands for known names only.
	namesUnknown, narrow bool
	clusters             map[string]map[string]string

	workloads   []*v1alpha1.ExternalWorkload
	unsupported Unsupported

	// views are the snapshots of members in which earlier rules of a class count; nil if there are none.
	views *views

	identity *identity
	// delta is the difference to the snapshot that this one was made from.
	delta delta
	// groups returns the addresses of external workloads by subject, computed on first use.
	groups func() map[string]*ExternalGroup
	// compiled caches the wildcard units by name and epoch, because every exact unit inherits from them.
	compiled sync.Map
	// shortages caches what is left out in the members, by resource.
	shortages sync.Map
	// supposedShortages caches what would be left out if the resource were in Enforce.
	supposedShortages sync.Map
	// noRequests contains, for each member in which allows of HTTP requests are not enforced, the reason.
	noRequests map[string]message.Message
	// addressDenies caches which members deny all addresses, by resource and member.
	addressDenies sync.Map
	// wildcardNames returns the names of wildcard units by their targets.
	wildcardNames func() map[target]string
	// translators are taken from the input. hasOthers reports whether a class has an enforcer with a translator.
	translators map[v1alpha1.EnforcerName]Translator
	hasOthers   bool
	// translations caches the prepared translators, and limits what they leave out of units.
	translations, limits sync.Map

	// refusedDenies are denies that are not compiled; the allows that they could override are left out, too.
	refusedDenies []refusedDeny

	refusals []Refusal
	problems []Problem
	// workloadProblems are the problems of external workloads, and protectionProblems those of ProtectedResources.
	workloadProblems, protectionProblems []Problem
	// changes are the instants at which an answer may change once, and hours the different hours of statements, by which answers change
	// again and again.
	changes []time.Time
	hours   []*Hours
	// lastEpoch is the epoch of the last question, if there are hours.
	lastEpoch atomic.Pointer[epochSpan]
}

// NewSnapshot builds a Snapshot. Invalid input is left out and reported by Refusals and Problems.
func NewSnapshot(in Input) *Snapshot { return (&Snapshot{}).Next(in) }

// Next is like NewSnapshot, but reuses the parsed statements of policies that are the same pointers in s. After a
// change of one policy among many this avoids most of the work.
func (s *Snapshot) Next(in Input) *Snapshot {
	next := &Snapshot{
		wildUnits:    map[string][]*statement{},
		members:      max(1, in.Members, len(in.Clusters)),
		namesUnknown: in.NamesUnknown,
		unsupported:  in.Unsupported,
		parsed:       make(map[*v1alpha1.AccessControlPolicy][]*statement, len(in.Policies)),
	}
	var problems [4][]Problem
	next.resources, problems[0] = resourceClasses(in.ResourceClasses)
	next.clusters, next.noRequests, next.fleet, next.known = clustersOf(in), noRequestsOf(in), fleetOf(in), knownNames(in)
	next.subjects, problems[1] = subjectClasses(in.SubjectClasses)
	next.computeCapacities()
	next.setTranslators(in.Translators)
	next.protectors = sortedObjects(in.Resources, byName[*v1alpha1.ProtectedResource])
	if sameProtections(s, next) { // most changes are grants and revocations
		next.protected, next.unclassed, problems[2] = s.protected, s.unclassed, s.protectionProblems
	} else {
		next.protected, next.unclassed, problems[2] = newProtections(next.protectors, next.resources)
	}
	next.protectionProblems = problems[2]
	next.workloads = workloadsOf(in)
	sameWorkloads := s.identity != nil && s.unsupported == in.Unsupported && sameClasses(s, next) && slices.Equal(s.workloads, next.workloads)
	if sameWorkloads { // there may be tens of thousands
		next.external, next.groups, problems[3] = s.external, s.groups, s.workloadProblems
	} else {
		next.external, problems[3] = newAddresses(next.workloads, next.subjects, in.Unsupported.Groups)
		next.groups = sync.OnceValue(next.externalGroups)
	}
	next.workloadProblems = problems[3]
	next.problems = slices.Concat(problems[:]...)
	slices.SortFunc(next.problems, compareProblems)

	reusable := sameClasses(s, next) && sameDistribution(s, next) && slices.Equal(s.wholeFits, next.wholeFits)
	names := nameCache{subjects: newNumbering(0)}
	for _, p := range sortedObjects(in.Policies, byName[*v1alpha1.AccessControlPolicy]) {
		statements, ok := s.parsed[p]
		if !ok || !reusable {
			statements = next.parse(p, &names)
		}
		next.parsed[p] = statements
		next.statements = append(next.statements, statements...)
	}
	next.refs = make([]Ref, len(next.statements))
	next.buildIndex()
	next.wildcardNames = sync.OnceValue(next.nameWildcards)
	for i, st := range next.statements {
		next.refs[i] = st.ref
		next.hasDuplicateRefs = next.hasDuplicateRefs || i > 0 && st.ref == next.refs[i-1]
		next.refusals = append(next.refusals, st.refusals("")...)
		next.narrow = next.narrow || len(st.subjects.stems) > 0 && next.isNarrow(st)
		if st.effect == Deny && st.refused() {
			next.refusedDenies = append(next.refusedDenies, next.newRefusedDeny(st))
		}
	}
	slices.SortFunc(next.refusals, compareRefusals)
	next.collectChanges(in.Resources)
	next.identity = &identity{}
	if s.identity != nil {
		next.delta = deltaOf(s, next)
		next.reuseWildcardUnits(s)
	}
	next.views = newViews(next, in, s.views)
	return next
}

// parse parses the statements of a policy, ordered by sid.
func (s *Snapshot) parse(p *v1alpha1.AccessControlPolicy, names *nameCache) []*statement {
	block := make([]statement, len(p.Spec.Statements))
	out := make([]*statement, len(block))
	for i := range block {
		st := &block[i]
		st.parse(p, &p.Spec.Statements[i], names)
		st.examine(s, names)
		out[i] = st
	}
	slices.SortStableFunc(out, func(a, b *statement) int { return strings.Compare(a.ref.SID, b.ref.SID) })
	return out
}

// sameClasses reports whether statements that were examined for a need not be examined again for b.
func sameClasses(a, b *Snapshot) bool {
	return slices.EqualFunc(a.resources.all, b.resources.all, func(a, b *resourceClass) bool { return a.object == b.object }) &&
		slices.EqualFunc(a.subjects.all, b.subjects.all, func(a, b *subjectClass) bool { return a.object == b.object })
}

// sameProtections reports whether the resources of a are protected by the same objects in b, whose classes and protectors are set.
func sameProtections(a, b *Snapshot) bool {
	return a.identity != nil && sameClasses(a, b) && slices.Equal(a.protectors, b.protectors)
}

// sameDistribution reports whether a and b can push the same statements.
func sameDistribution(a, b *Snapshot) bool {
	return a.unsupported == b.unsupported && (!b.unsupported.Groups || slices.Equal(a.workloads, b.workloads))
}

// collectChanges collects the instants at which an answer may change without a change of an object.
func (s *Snapshot) collectChanges(resources []*v1alpha1.ProtectedResource) {
	add := func(t time.Time) {
		if !t.IsZero() {
			s.changes = append(s.changes, t)
		}
	}
	for _, st := range s.statements {
		add(st.notBefore)
		add(st.notAfter)
	}
	for _, o := range resources {
		if o != nil && o.Spec.TemporaryAudit != nil {
			add(o.Spec.TemporaryAudit.Until.Time)
		}
	}
	slices.SortFunc(s.changes, time.Time.Compare)
	s.hours = hoursOfStatements(s.statements)
}

// NextChange returns the first instant later than after at which a statement or its hours may begin or end, or a temporary audit ends.
// It returns false if there is none.
func (s *Snapshot) NextChange(after time.Time) (next time.Time, found bool) {
	if i := s.changesUntil(after); i < len(s.changes) {
		next, found = s.changes[i], true
	}
	for _, h := range s.hours {
		if at, ok := h.Next(after); ok && (!found || at.Before(next)) {
			next, found = at, true
		}
	}
	return next, found
}

// LastChange returns the last such instant that is not later than at. It returns false if there is none.
func (s *Snapshot) LastChange(at time.Time) (last time.Time, found bool) {
	if i := s.changesUntil(at); i > 0 {
		last, found = s.changes[i-1], true
	}
	for _, h := range s.hours {
		if t, ok := h.Last(at); ok && (!found || t.After(last)) {
			last, found = t, true
		}
	}
	return last, found
}

// Refusals returns the statements that no unit contains, by policy and sid. Statements that only one unit lacks are in
// Unit.Refused.
func (s *Snapshot) Refusals() []Refusal { return slices.Clone(s.refusals) }

// Problems returns the problems of classes, protected resources and external workloads, by kind and name.
func (s *Snapshot) Problems() []Problem { return slices.Clone(s.problems) }

// SubjectsOf returns the names of a pod as a client, derived from its labels (plain keys): one name per SubjectClass
// whose label it has.
func (s *Snapshot) SubjectsOf(labels map[string]string) []string {
	var out []string
	for _, c := range s.subjects.all {
		if v := labels[string(c.object.Spec.LabelKey)]; v != "" {
			out = append(out, c.stem+v)
		}
	}
	return sortedUnique(out)
}

// SubjectsOfServiceAccount returns the names of a pod as a client, derived from its service account: one name per SubjectClass
// whose template gives that account. Enforcers that identify clients by service accounts match exactly these names.
func (s *Snapshot) SubjectsOfServiceAccount(account string) []string {
	var out []string
	for _, c := range s.subjects.all {
		before, after, ok := strings.Cut(c.object.Spec.ServiceAccountTemplate, "{id}")
		if !ok || len(account) < len(before)+len(after) || !strings.HasPrefix(account, before) || !strings.HasSuffix(account, after) {
			continue
		}
		if id := account[len(before) : len(account)-len(after)]; ValidLabelValue(id) {
			out = append(out, c.stem+id)
		}
	}
	return sortedUnique(out)
}

// ResourcesOf returns the names of a pod as a server, derived from its labels (plain keys): one name per ResourceClass
// whose label it has.
func (s *Snapshot) ResourcesOf(labels map[string]string) []string {
	var out []string
	for _, c := range s.resources.all {
		if v := labels[string(c.object.Spec.LabelKey)]; v != "" {
			out = append(out, c.stem+v)
		}
	}
	return sortedUnique(out)
}

// SubjectOfAddress returns the name of a source outside the fleet: the subject of the ExternalWorkload with the longest
// prefix that contains the address. It returns false for an address that several subjects claim.
func (s *Snapshot) SubjectOfAddress(a netip.Addr) (string, bool) {
	owners := s.external.lookup(normalAddress(a))
	if len(owners) != 1 || owners[0] == noOwner {
		return "", false
	}
	return owners[0], true
}

// ActionsOn returns the names of the actions of the resource's class that contain the port, sorted.
func (s *Snapshot) ActionsOn(resource string, proto v1alpha1.Protocol, port uint16) []string {
	c, ok := s.resources.of(resource)
	if !ok {
		return nil
	}
	var out []string
	for i := range c.actions {
		if portsContain(c.actions[i].ports, proto, port) {
			out = append(out, c.actions[i].name)
		}
	}
	return out
}

// RequestsOn returns the names of the actions of the resource's class on the port that a request belongs to: first the
// HTTP actions that match it, then the actions of whole connections, both sorted. judged reports whether the port has
// any HTTP action.
func (s *Snapshot) RequestsOn(resource string, proto v1alpha1.Protocol, port uint16, method, path string) (names []string, judged bool) {
	c, ok := s.resources.of(resource)
	if !ok {
		return nil, false
	}
	var whole []string
	q := Query{Method: method, Path: path}
	for i := range c.actions {
		a := &c.actions[i]
		switch {
		case !portsContain(a.ports, proto, port):
		case len(a.requests) == 0:
			whole = append(whole, a.name)
		default:
			judged = true
			if a.isRequest(&q, false) {
				names = append(names, a.name)
			}
		}
	}
	return append(names, whole...), judged
}

// ResourceClassOf returns the class of a resource name. The object must not be changed.
func (s *Snapshot) ResourceClassOf(name string) (*v1alpha1.ResourceClass, bool) {
	c, ok := s.resources.of(strings.TrimSuffix(name, "*"))
	if !ok {
		return nil, false
	}
	return c.object, true
}

// StatedClasses returns the classes of the resources that are protected or that a statement names exactly, in no order.
// It returns false if there is such a resource without a class. The objects must not be changed.
func (s *Snapshot) StatedClasses() (classes []*v1alpha1.ResourceClass, covered bool) {
	covered = true
	found := map[*resourceClass]bool{}
	for i := range s.index.nodes {
		c := s.index.nodes[i].class
		if c == nil {
			covered = false
			continue
		}
		if !found[c] {
			found[c], classes = true, append(classes, c.object)
		}
	}
	return classes, covered
}

// SubjectClassOf returns the class of a subject name. The object must not be changed.
func (s *Snapshot) SubjectClassOf(name string) (*v1alpha1.SubjectClass, bool) {
	c, ok := s.subjects.of(strings.TrimSuffix(name, "*"))
	if !ok {
		return nil, false
	}
	return c.object, true
}
