package policies

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Bounds of what is remembered of members that lag behind.
const (
	// keptChanges is how many changes of the host's policies are remembered, to find the one that a member has not realized.
	keptChanges = 64
	// keptPolicies is how many older states of the policies are kept for members that lag.
	keptPolicies = 8
	// maxLags bounds the lags of all members together.
	maxLags = 100_000
	// lagsPerUnit is how many lags of one resource in one member are remembered.
	lagsPerUnit = 4
)

// realized follows which units the members have, by the statuses that the adapter writes: with what was read back, and when.
type realized struct {
	now func() time.Time

	mu sync.Mutex
	// changes of the host's policies, oldest first.
	changes []change
	// held are older states of the policies that a lag refers to.
	held []*policy.Snapshot
	lags map[string]audit.Lags
	n    int

	// views are what readers get, by member; a map that is not changed any more. They are made anew when somebody reads after
	// a change, at most every publishEvery.
	views     atomic.Pointer[map[string]audit.Lags]
	dirty     atomic.Bool
	touched   map[string]bool
	published time.Time
}

// publishEvery bounds how often views are made: a member that lags may have thousands of units that change one by one.
const publishEvery = 100 * time.Millisecond

// change is one of the host's policies.
type change struct {
	at time.Time
	// before is nil when it is not kept any more.
	before *policy.Snapshot
	names  []string // of the units, sorted
}

func newRealized(now func() time.Time) *realized {
	return &realized{now: now, lags: map[string]audit.Lags{}, touched: map[string]bool{}}
}

// of returns the lags of a member; nil: none.
func (r *realized) of(member string) audit.Lags {
	if r.dirty.Load() && r.mu.TryLock() {
		if now := r.now(); now.Sub(r.published).Abs() >= publishEvery {
			r.publish(now)
		}
		r.mu.Unlock()
	}
	if views := r.views.Load(); views != nil {
		return (*views)[member]
	}
	return nil
}

// changed records that the host's policies changed.
func (r *realized) changed(before, after *policy.Snapshot, at time.Time) {
	names := policy.ChangedUnits(before, after)
	if len(names) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, change{at: at, before: before, names: names})
	if len(r.changes) > keptChanges {
		r.changes = slices.Delete(r.changes, 0, len(r.changes)-keptChanges)
	}
	r.release()
}

// release lets go of older states that no lag refers to.
func (r *realized) release() {
	for i := range max(len(r.changes)-keptEpochs, 0) {
		if !slices.Contains(r.held, r.changes[i].before) {
			r.changes[i].before = nil
		}
	}
}

// status takes in what the adapter says about a resource now, and what it said before; nil: nothing.
func (r *realized) status(before, after *v1alpha1.ProtectedResource, present *policy.Snapshot) {
	if after == nil {
		return
	}
	had, has := statesOf(before), after.Status.States()
	if before != nil && sameStates(had, has) {
		return
	}
	resource, now := string(after.Spec.Resource), r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range has {
		is, was := &has[i], stateOf(had, has[i].Name)
		if r.unit(resource, is, was, present, now) {
			r.touch(string(is.Name))
		}
	}
	if after.Status.Unlisted() > 0 {
		return // a member that the status has no room for may have what it had
	}
	for i := range had {
		was := &had[i]
		if stateOf(has, was.Name) == nil && r.end(string(was.Name), resource, now) {
			r.touch(string(was.Name)) // it has nothing, and nothing is asked for
		}
	}
}

func (r *realized) touch(member string) {
	r.touched[member] = true
	r.dirty.Store(true)
}

// forget drops what is known of a resource that is gone.
func (r *realized) forget(resource string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for member, units := range r.lags {
		if list, ok := units[resource]; ok {
			r.n -= len(list)
			delete(units, resource)
			r.touch(member)
		}
	}
}

// unit takes in one member's state, and reports whether its lags changed.
func (r *realized) unit(resource string, is, was *v1alpha1.ClusterState, present *policy.Snapshot, now time.Time) bool {
	member := string(is.Name)
	has := is.ObservedRevision
	blind := is.State == v1alpha1.MemberUnreachable || is.State == v1alpha1.MemberQuarantined
	if has == "" && blind && was != nil {
		has = was.ObservedRevision // the last that was seen
	}
	if has == is.DesiredRevision && is.State != v1alpha1.MemberDowngraded {
		return r.end(member, resource, since(is, now))
	}
	lag := audit.Lag{From: now}
	switch {
	case is.State == v1alpha1.MemberDowngraded:
		lag.Kind, lag.From = audit.LagOpen, since(is, now)
	case has == "" && !blind:
		lag.Kind, lag.From = audit.LagNothing, r.begin(resource, was, now)
	case is.State == v1alpha1.MemberDrifted:
		lag.From = since(is, now)
	case was != nil && was.ObservedRevision == has && was.DesiredRevision == has:
		lag = r.older(resource, was, present, now)
	case was != nil && was.ObservedRevision == has:
		return false // it lags as it did
	}
	return r.put(member, resource, lag)
}

// older finds the policies that a member had realized before a change: those before the first change since it did.
func (r *realized) older(resource string, was *v1alpha1.ClusterState, present *policy.Snapshot, now time.Time) audit.Lag {
	synced := since(was, now)
	for i := range r.changes {
		c := &r.changes[i]
		if !c.at.After(synced) || !c.changes(resource) {
			continue
		}
		lag := audit.Lag{From: c.at, At: c.at.Add(-1)}
		if has := r.before(i, resource); has != nil {
			lag.Kind, lag.Has = audit.LagOlder, has
		}
		return lag
	}
	// No policy changed: a grant or a temporary audit has begun or ended.
	if present != nil && slices.Contains(present.ChangedUnitsBetween(synced, now), resource) && r.hold(present) {
		return audit.Lag{Kind: audit.LagOlder, From: synced, Has: present, At: synced}
	}
	return audit.Lag{From: now}
}

func (c *change) changes(resource string) bool {
	_, found := slices.BinarySearch(c.names, resource)
	return found
}

// before returns the policies in force before change i, or an earlier snapshot that is kept already and in which the resource was
// the same. It returns nil if no such snapshot is kept and keptPolicies are kept already.
func (r *realized) before(i int, resource string) *policy.Snapshot {
	for j := i; j >= 0; j-- {
		if s := r.changes[j].before; s != nil && slices.Contains(r.held, s) {
			return s
		}
		if j > 0 && r.changes[j-1].changes(resource) {
			break
		}
	}
	if s := r.changes[i].before; s != nil && r.hold(s) {
		return s
	}
	return nil
}

// begin returns when the member first needed the resource: the time of the newest change of policies about it, or now if that is
// not known.
func (r *realized) begin(resource string, was *v1alpha1.ClusterState, now time.Time) time.Time {
	for i := len(r.changes) - 1; was == nil && i >= 0; i-- {
		if r.changes[i].changes(resource) {
			return r.changes[i].at
		}
	}
	return now
}

// hold keeps a snapshot. It returns false if too many are kept.
func (r *realized) hold(s *policy.Snapshot) bool {
	if slices.Contains(r.held, s) {
		return true
	}
	if len(r.held) >= keptPolicies {
		return false
	}
	r.held = append(r.held, s)
	return true
}

// put starts a lag. A lag that has not ended is ended at the start of the new one.
func (r *realized) put(member, resource string, lag audit.Lag) bool {
	r.end(member, resource, lag.From)
	if r.n >= maxLags {
		return true
	}
	units := r.lags[member]
	if units == nil {
		units = audit.Lags{}
		r.lags[member] = units
	}
	list := units[resource]
	if len(list) >= lagsPerUnit {
		r.n -= len(list) - lagsPerUnit + 1
		list = list[len(list)-lagsPerUnit+1:]
	}
	units[resource] = append(slices.Clone(list), lag)
	r.n++
	return true
}

// end ends the current lag. It returns false if there is none.
func (r *realized) end(member, resource string, at time.Time) bool {
	list := r.lags[member][resource]
	if len(list) == 0 || !list[len(list)-1].Until.IsZero() {
		return false
	}
	list = slices.Clone(list)
	last := &list[len(list)-1]
	last.Until = at
	if at.Before(last.From) {
		last.Until = last.From
	}
	r.lags[member][resource] = list
	return true
}

// publish drops what is too old, and makes new views of the members. Views share the lists, which are never changed.
func (r *realized) publish(now time.Time) {
	views := map[string]audit.Lags{}
	if old := r.views.Load(); old != nil {
		maps.Copy(views, *old)
	}
	var held []*policy.Snapshot
	for member, units := range r.lags {
		for resource, list := range units {
			if last := list[len(list)-1]; !last.Until.IsZero() && now.Sub(last.Until) > keptFor {
				r.n -= len(list)
				delete(units, resource)
				continue
			}
			for _, l := range list {
				if s, ok := l.Has.(*policy.Snapshot); ok && !slices.Contains(held, s) {
					held = append(held, s)
				}
			}
		}
		if len(units) == 0 {
			delete(r.lags, member)
			delete(views, member)
		}
	}
	for member := range r.touched {
		if units := r.lags[member]; units != nil {
			views[member] = maps.Clone(units)
		}
	}
	clear(r.touched)
	r.held, r.published = held, now
	r.release()
	r.views.Store(&views)
	r.dirty.Store(false)
}

// statesOf returns the members of a status, sorted by name; of nil there are none.
func statesOf(p *v1alpha1.ProtectedResource) []v1alpha1.ClusterState {
	if p == nil {
		return nil
	}
	return p.Status.States()
}

// stateOf finds a member among states that are sorted by name; nil: it is not there.
func stateOf(states []v1alpha1.ClusterState, member v1alpha1.ClusterName) *v1alpha1.ClusterState {
	i, found := slices.BinarySearchFunc(states, member, func(c v1alpha1.ClusterState, name v1alpha1.ClusterName) int { return cmp.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &states[i]
}

// since is when a state came about, by the adapter's clock, which may be ahead.
func since(s *v1alpha1.ClusterState, now time.Time) time.Time {
	if s.Since == nil || s.Since.After(now) {
		return now
	}
	return s.Since.Time
}

func sameStates(a, b []v1alpha1.ClusterState) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.ClusterState) bool {
		return x.Name == y.Name && x.State == y.State && x.DesiredRevision == y.DesiredRevision && x.ObservedRevision == y.ObservedRevision
	})
}
