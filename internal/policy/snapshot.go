package policy

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Snapshot answers every question about one state of the objects. It never changes and is safe for concurrent use.
type Snapshot struct {
	resources classes[*resourceClass]
	subjects  classes[*subjectClass]
	protected map[string]*protection
	external  addresses

	statements []*statement
	// exact holds the statements about a resource by its exact name; wild those by wildcard, by the head of the stem.
	exact map[string]*candidates
	wild  map[string][]wildcard

	refusals []Refusal
	problems []Problem
	changes  []time.Time
}

// candidates are the statements about one resource name, those of exact subjects found by subject.
type candidates struct {
	bySubject map[string][]*statement
	broad     []*statement
}

// wildcard holds the candidates of one wildcard resource.
type wildcard struct {
	stem string
	candidates
}

// maxPairs bounds the subject index: a statement with more pairs of exact subject and resource is looked through
// instead, because 256 times 256 entries for one statement would cost more memory than they save time.
const maxPairs = 2048

// NewSnapshot builds a Snapshot. What is wrong with the input is left out and told by Refusals and Problems.
func NewSnapshot(in Input) *Snapshot {
	s := &Snapshot{exact: map[string]*candidates{}, wild: map[string][]wildcard{}}
	var problems [4][]Problem
	s.resources, problems[0] = resourceClasses(in.ResourceClasses)
	s.subjects, problems[1] = subjectClasses(in.SubjectClasses)
	s.protected, problems[2] = newProtections(in.Resources, s.resources)
	s.external, problems[3] = newAddresses(in.Workloads, s.subjects)
	s.problems = slices.Concat(problems[:]...)
	slices.SortFunc(s.problems, compareProblems)

	for _, p := range sortedObjects(in.Policies, byName[*v1alpha1.AccessControlPolicy]) {
		for i := range p.Spec.Statements {
			st := newStatement(p.Name, &p.Spec.Statements[i])
			st.examine(s)
			s.statements = append(s.statements, st)
		}
	}
	slices.SortStableFunc(s.statements, func(a, b *statement) int { return compareRefs(a.ref, b.ref) })
	for _, st := range s.statements {
		s.index(st)
		s.refusals = append(s.refusals, st.refusals("")...)
	}
	slices.SortFunc(s.refusals, compareRefusals)
	s.collectChanges(in.Resources)
	return s
}

func (s *Snapshot) index(st *statement) {
	for _, r := range st.exact {
		c := s.exact[r]
		if c == nil {
			c = &candidates{}
			s.exact[r] = c
		}
		c.add(st)
	}
	for _, stem := range st.wild {
		head := headOf(stem)
		list := s.wild[head]
		i := slices.IndexFunc(list, func(w wildcard) bool { return w.stem == stem })
		if i < 0 {
			i, list = len(list), append(list, wildcard{stem: stem})
		}
		list[i].add(st)
		s.wild[head] = list
	}
}

func (c *candidates) add(st *statement) {
	if !st.subjects.simple() || len(st.subjects.exact)*(len(st.exact)+len(st.wild)) > maxPairs {
		c.broad = append(c.broad, st)
		return
	}
	if c.bySubject == nil {
		c.bySubject = map[string][]*statement{}
	}
	for _, name := range st.subjects.exact {
		c.bySubject[name] = append(c.bySubject[name], st)
	}
}

// collectChanges gathers the instants at which an answer may change without any object changing.
func (s *Snapshot) collectChanges(resources []*v1alpha1.ProtectedResource) {
	for _, st := range s.statements {
		s.changes = append(s.changes, st.notBefore, st.notAfter)
	}
	for _, o := range resources {
		if o != nil && o.Spec.TemporaryAudit != nil {
			s.changes = append(s.changes, o.Spec.TemporaryAudit.Until.Time)
		}
	}
	s.changes = slices.DeleteFunc(s.changes, time.Time.IsZero)
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

// Refusals are the statements that no unit holds, by policy and sid. What only one unit lacks is in Unit.Refused.
func (s *Snapshot) Refusals() []Refusal { return slices.Clone(s.refusals) }

// Problems are what is wrong with classes, protected resources and external workloads, by kind and name.
func (s *Snapshot) Problems() []Problem { return slices.Clone(s.problems) }

// SubjectsOf names a pod as a client, by its labels (plain keys): one name per SubjectClass whose label it carries.
func (s *Snapshot) SubjectsOf(labels map[string]string) []string {
	var out []string
	for _, c := range s.subjects.all {
		if v := labels[string(c.object.Spec.LabelKey)]; v != "" {
			out = append(out, c.pattern.stem()+v)
		}
	}
	return sortedUnique(out)
}

// ResourcesOf names a pod as a server, by its labels (plain keys): one name per ResourceClass whose label it carries.
func (s *Snapshot) ResourcesOf(labels map[string]string) []string {
	var out []string
	for _, c := range s.resources.all {
		if v := labels[string(c.object.Spec.LabelKey)]; v != "" {
			out = append(out, c.pattern.stem()+v)
		}
	}
	return sortedUnique(out)
}

// SubjectOfAddress names a source outside the fleet: the subject of the ExternalWorkload with the longest prefix that
// contains the address. An address that is given to several subjects has none.
func (s *Snapshot) SubjectOfAddress(a netip.Addr) (string, bool) {
	owners := s.external.lookup(plain(a))
	if len(owners) != 1 {
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
