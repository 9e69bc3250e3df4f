package policy

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Snapshot answers every question about one state of the objects. It never changes and is safe for concurrent use.
type Snapshot struct {
	resources classes[*resourceClass]
	subjects  classes[*subjectClass]
	protected map[string]*protection
	// unclassed are the resources in Enforce that no class covers, sorted.
	unclassed []string
	external  addresses

	// parsed are the statements of each policy; statements are all of them, by policy and sid.
	parsed     map[*v1alpha1.AccessControlPolicy][]*statement
	statements []*statement
	// refs are those of the statements, so that a decision by one of them can name it without allocation.
	refs []Ref
	// doubles tells that two statements have the same ref, which the API does not let in.
	doubles bool
	index   index

	// wildUnits holds the allows of each wildcard unit, by its name.
	wildUnits map[string][]*statement
	// known are the names that prefixes stand for, sorted.
	known   []string
	members int
	// fleet are the members, sorted by name, and several tells that they are in several cluster meshes.
	fleet   []Cluster
	several bool
	// wholeFits tells of each subject class, as in subjects.all, whether an allow of the whole class would fit everywhere.
	wholeFits []bool
	// namesUnknown and clusters are of the input; narrow tells that an allow has a prefix for subject that stands for known
	// names only.
	namesUnknown, narrow bool
	clusters             map[string]map[string]string

	workloads []*v1alpha1.ExternalWorkload
	lacks     Lacks

	identity *identity
	// delta is what differs from the snapshot that this one was made from.
	delta delta
	// groups are the addresses of external workloads by subject, made when they are first needed.
	groups func() map[string]*ExternalGroup
	// compiled keeps the wildcard units by name and epoch, because every exact unit inherits from them.
	compiled sync.Map
	// shortages keeps what is left out in the members, by resource.
	shortages sync.Map
	// supposedShortages keeps what would be left out if the resource were in Enforce.
	supposedShortages sync.Map
	// noRequests says of members why allows of requests are not enforced there.
	noRequests map[string]string
	// walled keeps which members deny all addresses, by resource and member.
	walled sync.Map
	// wildcardNames are the names of wildcard units by their targets.
	wildcardNames func() map[target]string

	// refusedDenies take allows with them.
	refusedDenies []refusedDeny

	refusals []Refusal
	problems []Problem
	// workloadProblems are those of them that are about external workloads.
	workloadProblems []Problem
	changes          []time.Time
}

// NewSnapshot builds a Snapshot. What is wrong with the input is left out and told by Refusals and Problems.
func NewSnapshot(in Input) *Snapshot { return (&Snapshot{}).Next(in) }

// Next is NewSnapshot, and takes over what s has parsed of policies that are the same pointers: after a change of one
// among many policies this saves most of the work.
func (s *Snapshot) Next(in Input) *Snapshot {
	next := &Snapshot{wildUnits: map[string][]*statement{}, members: max(1, in.Members, len(in.Clusters)), namesUnknown: in.NamesUnknown, lacks: in.Lacks, parsed: make(map[*v1alpha1.AccessControlPolicy][]*statement, len(in.Policies))}
	var problems [4][]Problem
	next.resources, problems[0] = resourceClasses(in.ResourceClasses)
	next.clusters, next.noRequests, next.fleet, next.known = clustersOf(in), noRequestsOf(in), fleetOf(in), knownNames(in)
	next.subjects, problems[1] = subjectClasses(in.SubjectClasses)
	next.makeRooms()
	next.protected, next.unclassed, problems[2] = newProtections(in.Resources, next.resources)
	next.workloads = workloadsOf(in)
	sameWorkloads := s.identity != nil && s.lacks == in.Lacks && sameClasses(s, next) && slices.Equal(s.workloads, next.workloads)
	if sameWorkloads { // there may be tens of thousands
		next.external, next.groups, problems[3] = s.external, s.groups, s.workloadProblems
	} else {
		next.external, problems[3] = newAddresses(next.workloads, next.subjects, in.Lacks.Groups)
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
		next.doubles = next.doubles || i > 0 && st.ref == next.refs[i-1]
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
		next.keepCompiled(s)
	}
	return next
}

// parse reads the statements of a policy, by sid.
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

// sameClasses tells whether statements examined for a are also examined for b.
func sameClasses(a, b *Snapshot) bool {
	return slices.EqualFunc(a.resources.all, b.resources.all, func(a, b *resourceClass) bool { return a.object == b.object }) &&
		slices.EqualFunc(a.subjects.all, b.subjects.all, func(a, b *subjectClass) bool { return a.object == b.object })
}

// sameDistribution tells whether statements that a can push b can push, too.
func sameDistribution(a, b *Snapshot) bool {
	return a.lacks == b.lacks && (!b.lacks.Groups || slices.Equal(a.workloads, b.workloads))
}

// collectChanges gathers the instants at which an answer may change without any object changing.
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
}

// NextChange is the first instant later than after at which a statement begins or ends, or a temporary audit ends;
// false: there is none.
func (s *Snapshot) NextChange(after time.Time) (time.Time, bool) {
	i, found := slices.BinarySearchFunc(s.changes, after, time.Time.Compare)
	for found && i < len(s.changes) && s.changes[i].Equal(after) {
		i++
	}
	if i == len(s.changes) {
		return time.Time{}, false
	}
	return s.changes[i], true
}

// LastChange is the last such instant that is not later than at; false: there is none.
func (s *Snapshot) LastChange(at time.Time) (time.Time, bool) {
	i, found := slices.BinarySearchFunc(s.changes, at, time.Time.Compare)
	if found {
		return s.changes[i], true
	}
	if i == 0 {
		return time.Time{}, false
	}
	return s.changes[i-1], true
}

// Refusals are the statements that no unit holds, by policy and sid. What only one unit lacks is in Unit.Refused.
func (s *Snapshot) Refusals() []Refusal { return slices.Clone(s.refusals) }

// Problems are what is wrong with classes, protected resources and external workloads, by kind and name.
func (s *Snapshot) Problems() []Problem { return slices.Clone(s.problems) }

// SubjectsOf names a pod as a client, by its labels (plain keys): one name per SubjectClass whose label it carries.
func (s *Snapshot) SubjectsOf(labels map[string]string) []string {
	var out []string
	for _, c := range s.subjects.all {
		if v := labels[string(c.object.Spec.LabelKey)]; v != "" {
			out = append(out, c.stem+v)
		}
	}
	return sortedUnique(out)
}

// ResourcesOf names a pod as a server, by its labels (plain keys): one name per ResourceClass whose label it carries.
func (s *Snapshot) ResourcesOf(labels map[string]string) []string {
	var out []string
	for _, c := range s.resources.all {
		if v := labels[string(c.object.Spec.LabelKey)]; v != "" {
			out = append(out, c.stem+v)
		}
	}
	return sortedUnique(out)
}

// SubjectOfAddress names a source outside the fleet: the subject of the ExternalWorkload with the longest prefix that
// contains the address. An address that is given to several subjects has none.
func (s *Snapshot) SubjectOfAddress(a netip.Addr) (string, bool) {
	owners := s.external.lookup(plain(a))
	if len(owners) != 1 || owners[0] == nobody {
		return "", false
	}
	return owners[0], true
}

// ActionsOn names the actions of the resource's class that contain the port, sorted.
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

// RequestsOn names the actions of the resource's class on the port that a request is of: those of requests that match it,
// and then those of whole connections, both sorted. It also reports whether the port has any action of requests.
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

// ResourceClassOf finds the class of a resource name. The object must not be changed.
func (s *Snapshot) ResourceClassOf(name string) (*v1alpha1.ResourceClass, bool) {
	c, ok := s.resources.of(strings.TrimSuffix(name, "*"))
	if !ok {
		return nil, false
	}
	return c.object, true
}

// SubjectClassOf finds the class of a subject name. The object must not be changed.
func (s *Snapshot) SubjectClassOf(name string) (*v1alpha1.SubjectClass, bool) {
	c, ok := s.subjects.of(strings.TrimSuffix(name, "*"))
	if !ok {
		return nil, false
	}
	return c.object, true
}
