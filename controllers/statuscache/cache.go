// Package statuscache holds the last report about each unit: what the unit contains, and the state of each member. The controller
// of units writes it, and the controller of policies reads it. It is derived, held in memory, and rebuilt after a restart.
package statuscache

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Report is the state of one unit. It must not be changed after Put.
type Report struct {
	Resource string
	// Version is the version of the policy cache with which the unit was decided.
	Version uint64
	// Wanted reports whether some member must have the unit.
	Wanted bool
	// Revision is the hash of the unit's template, or "" if nothing is wanted.
	Revision string
	// SIDs are the statements of each policy in the unit, sorted.
	SIDs map[string][]string
	// FormerPolicies are policies that have no statement in the unit any more, but whose statements a member may still have,
	// sorted.
	FormerPolicies []string
	// Refused are statements that the unit lacks.
	Refused []policy.Refusal
	// Unenforced lists what a dataplane leaves open regardless of the statements.
	Unenforced []message.Message
	// Clusters are the members that the unit targets or was seen in.
	Clusters []v1alpha1.ClusterState
	// OnlySlowPending reports whether members are in the state Pending, and all of these are known to be slower than the others.
	OnlySlowPending bool
	// Nodes counts the nodes of the members that run acp-node; nil if none does.
	Nodes *v1alpha1.NodeSummary
	// Pushed contains the members that have the present version according to their engines. Clusters also reflects what was read back.
	Pushed map[string]bool
	// Problem is the reason why the unit could not be written.
	Problem *Problem
	// Objects are the names of the unit's objects in the members.
	Objects []string
	// Groups are the names of the address groups that the unit refers to, and of those that have yet to be removed and that its rules still select.
	Groups []string
	// Desired is the revision that each member has to have of each object, by object and member, if the unit refers to groups.
	Desired map[string]map[string]string
	// Entries is the estimated number of policy-map entries that the unit needs.
	Entries int
}

// Problem is a reason for the condition Compiled to be False.
type Problem struct {
	Reason  string
	Message message.Message
}

// Policies returns every policy that the report concerns, sorted.
func (r Report) Policies() []string {
	var out []string
	for p := range r.SIDs {
		out = append(out, p)
	}
	out = append(out, r.FormerPolicies...)
	for _, f := range r.Refused {
		out = append(out, f.Ref.Policy)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Troubled reports whether a member is neither Realized nor progressing to it.
func (r Report) Troubled() bool {
	return slices.ContainsFunc(r.Clusters, func(c v1alpha1.ClusterState) bool { return c.Troubled() })
}

// Awaited reports whether a member has yet to get the unit, and is not known to be slower than the others.
func (r Report) Awaited() bool {
	return !r.OnlySlowPending && slices.ContainsFunc(r.Clusters, func(c v1alpha1.ClusterState) bool { return c.State == v1alpha1.MemberPending })
}

// Realized reports whether every listed member is in the state Realized.
func (r Report) Realized() bool {
	return !slices.ContainsFunc(r.Clusters, func(c v1alpha1.ClusterState) bool { return c.State != v1alpha1.MemberRealized })
}

// Cache is safe for concurrent use.
type Cache struct {
	mu       sync.RWMutex
	reports  map[string]Report
	byPolicy map[string]sets.Set[string]
	byObject map[string]string
	byGroup  map[string]sets.Set[string]
	// waiting contains the policies that wait for the next report about a resource, which may not concern them.
	waiting map[string]sets.Set[string]
	// decided are the resources that were decided at least once, including those without a report.
	decided sets.Set[string]
}

// New returns an empty cache.
func New() *Cache {
	return &Cache{
		reports:  map[string]Report{},
		byPolicy: map[string]sets.Set[string]{},
		byObject: map[string]string{},
		byGroup:  map[string]sets.Set[string]{},
		waiting:  map[string]sets.Set[string]{},
		decided:  sets.New[string](),
	}
}

// Put stores a report and returns the previous one.
func (c *Cache) Put(r Report) (before Report, had bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, had = c.remove(r.Resource)
	c.decided.Insert(r.Resource)
	c.reports[r.Resource] = r
	for _, p := range r.Policies() {
		if c.byPolicy[p] == nil {
			c.byPolicy[p] = sets.New[string]()
		}
		c.byPolicy[p].Insert(r.Resource)
	}
	for _, o := range r.Objects {
		c.byObject[o] = r.Resource
	}
	for _, g := range r.Groups {
		if c.byGroup[g] == nil {
			c.byGroup[g] = sets.New[string]()
		}
		c.byGroup[g].Insert(r.Resource)
	}
	return before, had
}

// Delete removes the report about a unit.
func (c *Cache) Delete(resource string) (before Report, had bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decided.Insert(resource)
	return c.remove(resource)
}

func (c *Cache) remove(resource string) (Report, bool) {
	old, ok := c.reports[resource]
	if !ok {
		return Report{}, false
	}
	delete(c.reports, resource)
	for _, p := range old.Policies() {
		if c.byPolicy[p].Delete(resource).Len() == 0 {
			delete(c.byPolicy, p)
		}
	}
	for _, o := range old.Objects {
		delete(c.byObject, o)
	}
	for _, g := range old.Groups {
		if c.byGroup[g].Delete(resource).Len() == 0 {
			delete(c.byGroup, g)
		}
	}
	return old, true
}

// Await records that the status of a policy waits for the next report about each of some resources.
func (c *Cache) Await(policyName string, resources ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		if c.waiting[r] == nil {
			c.waiting[r] = sets.New[string]()
		}
		c.waiting[r].Insert(policyName)
	}
}

// Awaited returns the policies that waited for the report about a resource, sorted, and removes them.
func (c *Cache) Awaited(resource string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Sorted(maps.Keys(c.waiting[resource]))
	delete(c.waiting, resource)
	return out
}

// Get returns the report about a unit.
func (c *Cache) Get(resource string) (Report, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.reports[resource]
	return r, ok
}

// Decided reports whether a resource was decided at least once since the start.
func (c *Cache) Decided(resource string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.decided.Has(resource)
}

// Each calls do with every report, which do must not keep or change. do must not call the cache.
func (c *Cache) Each(do func(*Report)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for resource := range c.reports {
		r := c.reports[resource]
		do(&r)
	}
}

// Concerning returns the reports that concern a policy, by resource.
func (c *Cache) Concerning(policyName string) []Report {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []Report
	for r := range c.byPolicy[policyName] {
		out = append(out, c.reports[r])
	}
	slices.SortFunc(out, func(a, c Report) int { return cmp.Compare(a.Resource, c.Resource) })
	return out
}

// ResourceOf returns the resource whose unit has an object of that name in the members.
func (c *Cache) ResourceOf(object string) (string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.byObject[object]
	return r, ok
}

// UsersOf returns the resources whose units refer to the group of an external subject, sorted.
func (c *Cache) UsersOf(group string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.byGroup[group]))
}

// Resources returns every resource with a report, sorted.
func (c *Cache) Resources() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]string, 0, len(c.reports))
	for r := range c.reports {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}
