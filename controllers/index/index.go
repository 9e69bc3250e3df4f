// Package index owns the present objects of ACP's kinds as the controllers see them, and the policy snapshot made of
// them. Every change first enters the index and then feeds the controllers, so that none decides on an older picture
// than the one that woke it. It reads, and writes nothing.
package index

import (
	"cmp"
	"slices"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Index is safe for concurrent use. The objects that it returns are shared: nobody may change them.
type Index struct {
	feeds Feeds
	// changes wakes the clock: an object may have brought an earlier instant.
	changes chan struct{}

	mu        sync.RWMutex
	version   uint64
	policies  map[string]*v1alpha1.AccessControlPolicy
	since     map[string]uint64
	resources map[string]*v1alpha1.ProtectedResource
	named     map[string]map[string]struct{}
	classes   map[string]*v1alpha1.ResourceClass
	subjects  map[string]*v1alpha1.SubjectClass
	workloads map[string]*v1alpha1.ExternalWorkload

	building sync.Mutex
	view     *View
}

// View is a snapshot with the version of the index that it was made of.
type View struct {
	*policy.Snapshot
	Version  uint64
	refusals map[string][]policy.Refusal
	problems map[Object][]policy.Problem
}

// Object names an object by kind.
type Object struct{ Kind, Name string }

// RefusalsOf returns what is refused of a policy.
func (v *View) RefusalsOf(policyName string) []policy.Refusal { return v.refusals[policyName] }

// ProblemsOf returns what is wrong with an object.
func (v *View) ProblemsOf(kind, name string) []policy.Problem { return v.problems[Object{kind, name}] }

// New makes an empty index.
func New(feeds Feeds) *Index {
	return &Index{
		feeds: feeds, changes: make(chan struct{}, 1), policies: map[string]*v1alpha1.AccessControlPolicy{}, since: map[string]uint64{},
		resources: map[string]*v1alpha1.ProtectedResource{}, named: map[string]map[string]struct{}{},
		classes: map[string]*v1alpha1.ResourceClass{}, subjects: map[string]*v1alpha1.SubjectClass{},
		workloads: map[string]*v1alpha1.ExternalWorkload{},
	}
}

// View returns the snapshot of the present objects. It is made at most once per version, by the first who asks.
func (x *Index) View() *View {
	x.building.Lock()
	defer x.building.Unlock()
	x.mu.RLock()
	version := x.version
	if x.view != nil && x.view.Version == version {
		x.mu.RUnlock()
		return x.view
	}
	in := policy.Input{Policies: values(x.policies), Resources: values(x.resources), ResourceClasses: values(x.classes),
		SubjectClasses: values(x.subjects), Workloads: values(x.workloads)}
	x.mu.RUnlock()
	v := &View{Snapshot: policy.NewSnapshot(in), Version: version,
		refusals: map[string][]policy.Refusal{}, problems: map[Object][]policy.Problem{}}
	for _, r := range v.Refusals() {
		v.refusals[r.Ref.Policy] = append(v.refusals[r.Ref.Policy], r)
	}
	for _, p := range v.Problems() {
		v.problems[Object{p.Kind, p.Name}] = append(v.problems[Object{p.Kind, p.Name}], p)
	}
	x.view = v
	return v
}

// Policy returns a policy and the version of the index in which its present spec appeared.
func (x *Index) Policy(name string) (*v1alpha1.AccessControlPolicy, uint64, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, ok := x.policies[name]
	return p, x.since[name], ok
}

// Protecting returns the ProtectedResources of a resource, by name.
func (x *Index) Protecting(resource string) []*v1alpha1.ProtectedResource {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]*v1alpha1.ProtectedResource, 0, len(x.named[resource]))
	for n := range x.named[resource] {
		out = append(out, x.resources[n])
	}
	slices.SortFunc(out, func(a, b *v1alpha1.ProtectedResource) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ClassesOnly returns the classes without policies and resources: what a unit without any statement is compiled from.
func (x *Index) ClassesOnly() policy.Input {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return policy.Input{ResourceClasses: values(x.classes), SubjectClasses: values(x.subjects)}
}

// ResourceClass, SubjectClass and Workload return an object by name.
func (x *Index) ResourceClass(name string) (*v1alpha1.ResourceClass, bool) {
	return lookup(x, x.classes, name)
}

func (x *Index) SubjectClass(name string) (*v1alpha1.SubjectClass, bool) {
	return lookup(x, x.subjects, name)
}

func (x *Index) Workload(name string) (*v1alpha1.ExternalWorkload, bool) {
	return lookup(x, x.workloads, name)
}

func lookup[T any](x *Index, m map[string]T, name string) (T, bool) {
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
