// Package policycache holds the present objects of ACP's kinds as the controllers see them, and the policy snapshot that is made of
// them. Every change enters the cache before the controllers are triggered, so that none decides on an older state than the one
// that triggered it. The package writes nothing.
package policycache

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/policy"
)

// Cache is safe for concurrent use. The objects that it returns are shared and must not be changed.
type Cache struct {
	queues Queues
	// changes signals the clock, because a changed object may have an earlier instant.
	changes chan struct{}

	mu        sync.RWMutex
	version   uint64
	policies  map[string]*v1alpha1.AccessControlPolicy
	since     map[string]uint64
	resources map[string]*v1alpha1.ProtectedResource
	named     map[string]sets.Set[string]
	classes   map[string]*v1alpha1.ResourceClass
	// classSince is the version in which what a resource class means last changed, by name.
	classSince map[string]uint64
	subjects   map[string]*v1alpha1.SubjectClass
	workloads  map[string]*v1alpha1.ExternalWorkload
	// decisive are the objects of which the views are made.
	decisive decisive

	// unsupported describes which objects cannot be pushed to the members now.
	unsupported policy.Unsupported
	// labels are the labels of pods in the members: sorted values by key.
	labels map[string][]string
	// clusters are the members, by name, or nil if they are not known yet.
	clusters []policy.Cluster
	// members are the reports about the members, by this adapter or the previous one.
	members map[string]*v1alpha1.MemberCluster

	building sync.Mutex
	view     *View
}

// View is a snapshot with the version of the cache from which it was made.
type View struct {
	*policy.Snapshot
	Version uint64
	// Settled reports whether the snapshot is for members in which earlier rules of a class count.
	Settled  bool
	refusals map[string][]policy.Refusal
	problems map[Object][]policy.Problem
	groups   map[string]policy.ExternalGroup
	// byClass contains the subjects of groups by the ID of their class.
	byClass map[string][]string
	// byID contains the subject of each group.
	byID map[string]string
}

// For returns the view that counts in a member: v itself, unless the change of a class has not begun there.
func (v *View) For(cluster string) *View {
	s := v.In(cluster)
	if s == v.Snapshot {
		return v
	}
	out := *v
	out.Snapshot, out.Settled = s, true
	return &out
}

// Object identifies an object by kind and name.
type Object struct{ Kind, Name string }

// RefusalsOf returns the refusals of a policy.
func (v *View) RefusalsOf(policyName string) []policy.Refusal { return v.refusals[policyName] }

// ProblemsOf returns the problems of an object.
func (v *View) ProblemsOf(kind, name string) []policy.Problem { return v.problems[Object{kind, name}] }

// New returns an empty cache.
func New(queues Queues) *Cache {
	return &Cache{
		queues: queues, changes: make(chan struct{}, 1), policies: map[string]*v1alpha1.AccessControlPolicy{}, since: map[string]uint64{},
		resources: map[string]*v1alpha1.ProtectedResource{}, named: map[string]sets.Set[string]{},
		classes: map[string]*v1alpha1.ResourceClass{}, classSince: map[string]uint64{}, subjects: map[string]*v1alpha1.SubjectClass{},
		workloads: map[string]*v1alpha1.ExternalWorkload{}, members: map[string]*v1alpha1.MemberCluster{},
		// Groups can be pushed once their kind is seen, and names are known once a member was read.
		unsupported: policy.Unsupported{Groups: true, Names: true},
	}
}

// View returns the snapshot of the present objects. It is made at most once per version, on the first call.
func (x *Cache) View() *View {
	x.building.Lock()
	defer x.building.Unlock()
	x.mu.RLock()
	version := x.version
	if x.view != nil && x.view.Version == version {
		x.mu.RUnlock()
		return x.view
	}
	in := policy.NewInput(x.decisive.objects(), x.fleet())
	before := x.view
	x.mu.RUnlock()
	if before == nil {
		before = &View{Snapshot: policy.NewSnapshot(policy.Input{})}
	}
	v := &View{Snapshot: before.Next(in), Version: version,
		refusals: map[string][]policy.Refusal{}, problems: map[Object][]policy.Problem{},
		groups: map[string]policy.ExternalGroup{}, byClass: map[string][]string{}, byID: map[string]string{}}
	for _, r := range v.Refusals() {
		v.refusals[r.Ref.Policy] = append(v.refusals[r.Ref.Policy], r)
	}
	for _, p := range v.Problems() {
		v.problems[Object{p.Kind, p.Name}] = append(v.problems[Object{p.Kind, p.Name}], p)
	}
	for _, g := range v.ExternalGroups() {
		v.groups[g.Subject], v.byID[g.ID] = g, g.Subject
		v.byClass[g.ClassID] = append(v.byClass[g.ClassID], g.Subject)
	}
	x.view = v
	x.queues.enqueueDifferences(before, v)
	return v
}

// Group returns the addresses of an external subject.
func (v *View) Group(subject string) (policy.ExternalGroup, bool) {
	g, ok := v.groups[subject]
	return g, ok
}

// SubjectOf returns the external subject whose groups have an ID, which may have a suffix after a dash; "" if there is
// none.
func (v *View) SubjectOf(id string) string {
	for {
		if subject, ok := v.byID[id]; ok {
			return subject
		}
		i := strings.LastIndexByte(id, '-')
		if i < 0 {
			return ""
		}
		id = id[:i]
	}
}

// Resources returns the resources that ProtectedResources name, in no particular order.
func (x *Cache) Resources() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.named))
}

// HasWildcardUnit reports whether the unit of a wildcard has statements.
func (v *View) HasWildcardUnit(wildcard string) bool {
	return slices.Contains(v.WildcardUnits(wildcard), wildcard)
}

// GroupsOf returns the external subjects that a unit's rules refer to, sorted.
func (v *View) GroupsOf(u *policy.Unit) []string {
	var out []string
	for i := range u.Rules {
		for _, id := range u.Rules[i].External {
			if subject, ok := v.byID[id]; ok {
				out = append(out, subject)
			}
		}
		for _, class := range u.Rules[i].ExternalClasses {
			out = append(out, v.byClass[class]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SetGroupsSupported sets whether groups of external workloads can be pushed to the members, which they can until it is called.
func (x *Cache) SetGroupsSupported(groups bool) {
	x.mu.Lock()
	if x.unsupported.Groups == !groups {
		x.mu.Unlock()
		return
	}
	x.unsupported.Groups = !groups
	x.nextVersion()
	for p := range x.policies {
		x.since[p] = x.version
	}
	x.mu.Unlock()
	x.EnqueueAll(requestqueue.BulkChange)
	x.EnqueueWorkloads()
}

// GroupsSupported reports whether groups of external workloads can be pushed to the members; true until SetGroupsSupported says otherwise.
func (x *Cache) GroupsSupported() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return !x.unsupported.Groups
}

// Policy returns a policy, and the version of the cache in which its present spec appeared.
func (x *Cache) Policy(name string) (*v1alpha1.AccessControlPolicy, uint64, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, ok := x.policies[name]
	return p, x.since[name], ok
}

// Protecting returns the ProtectedResources of a resource, by name.
func (x *Cache) Protecting(resource string) []*v1alpha1.ProtectedResource {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]*v1alpha1.ProtectedResource, 0, len(x.named[resource]))
	for n := range x.named[resource] {
		out = append(out, x.resources[n])
	}
	slices.SortFunc(out, func(a, b *v1alpha1.ProtectedResource) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ResourceBlockingDeletion returns the name of a ProtectedResource that a pattern covers and of which members may have objects, or "".
func (x *Cache) ResourceBlockingDeletion(pattern string) string {
	class, err := policy.ParseName(pattern)
	if err != nil {
		return ""
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	holder := ""
	for name, o := range x.resources {
		resource, err := policy.ParseName(string(o.Spec.Resource))
		if err == nil && class.Covers(resource) && hasFinalizer(o) && (holder == "" || name < holder) {
			holder = name
		}
	}
	return holder
}

// StatementBlockingDeletion returns a statement that has not expired and has a subject that the pattern of a SubjectClass covers,
// as "<policy>/<sid>", or "". It returns the first by name, so that the answer is stable.
func (x *Cache) StatementBlockingDeletion(pattern string, now time.Time) string {
	class, err := policy.ParseName(pattern)
	if err != nil {
		return ""
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	holder := ""
	for name, p := range x.policies {
		for i := range p.Spec.Statements {
			s := &p.Spec.Statements[i]
			if ref := name + "/" + s.SID; (holder == "" || ref < holder) && !isOver(s, now) &&
				slices.ContainsFunc(s.Subjects, func(subject v1alpha1.Subject) bool {
					n, err := policy.ParseName(string(subject))
					return err == nil && class.Overlaps(n)
				}) {
				holder = ref
			}
		}
	}
	return holder
}

func isOver(s *v1alpha1.Statement, now time.Time) bool {
	return s.NotAfter != nil && !now.Before(s.NotAfter.Time)
}

// deletedSubjectClasses returns the SubjectClasses whose deletion waits for statements. The caller must hold the lock.
func (x *Cache) deletedSubjectClasses() []string {
	var out []string
	for name, c := range x.subjects {
		if c.DeletionTimestamp != nil {
			out = append(out, name)
		}
	}
	return out
}

// hasFinalizer reports whether a ProtectedResource has the finalizer, so that members may have objects of its unit.
func hasFinalizer(o *v1alpha1.ProtectedResource) bool {
	return slices.Contains(o.Finalizers, v1alpha1.FinalizerProtectedResource)
}

// ClassesOnly returns the classes without policies and resources, from which a unit without statements is compiled.
func (x *Cache) ClassesOnly() policy.Input {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return policy.Input{ResourceClasses: values(x.classes), SubjectClasses: values(x.subjects)}
}

// ResourceClass returns the ResourceClass with a name.
func (x *Cache) ResourceClass(name string) (*v1alpha1.ResourceClass, bool) {
	return lookup(x, x.classes, name)
}

// ClassSince returns the version of the cache in which what a ResourceClass means last changed: its spec, or the members in which its rules
// count.
func (x *Cache) ClassSince(name string) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.classSince[name]
}

// SubjectClass returns the SubjectClass with a name.
func (x *Cache) SubjectClass(name string) (*v1alpha1.SubjectClass, bool) {
	return lookup(x, x.subjects, name)
}

// Workload returns the ExternalWorkload with a name.
func (x *Cache) Workload(name string) (*v1alpha1.ExternalWorkload, bool) {
	return lookup(x, x.workloads, name)
}

// EnqueueResourceClasses enqueues all resource classes.
func (x *Cache) EnqueueResourceClasses() {
	x.mu.RLock()
	names := slices.Collect(maps.Keys(x.classes))
	x.mu.RUnlock()
	x.queues.ResourceClasses.Add(requestqueue.Observed, names...)
}

func lookup[T any](x *Cache, m map[string]T, name string) (T, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v, ok := m[name]
	return v, ok
}

func values[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
