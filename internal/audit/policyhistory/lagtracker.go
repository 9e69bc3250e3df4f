package policyhistory

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

// Limits of the memory for members that lag.
const (
	// keptChanges is the number of the latest changes of policies that are kept, to find the one that a member has not realized.
	keptChanges = 64
	// keptPolicies is the number of older snapshots that are kept for members that lag.
	keptPolicies = 8
	// maxLags bounds the lags of all members together.
	maxLags = 100_000
	// lagsPerUnit is the number of lags of one resource in one member that are kept.
	lagsPerUnit = 4
)

// lagTracker records in which periods a member did not have what the policies require. It reads the statuses that the adapter
// writes, which contain what was read back, and when.
type lagTracker struct {
	now func() time.Time

	mu sync.Mutex
	// changes contains the latest changes of policies, oldest first.
	changes []change
	// held contains the older snapshots that a lag refers to.
	held []*policy.Snapshot
	lags map[string]audit.Lags
	n    int

	// views contains the lags for readers, by member. The map is immutable. It is replaced when a reader comes after a change, at
	// most every publishEvery.
	views     atomic.Pointer[map[string]audit.Lags]
	dirty     atomic.Bool
	touched   map[string]bool
	published time.Time
}

// publishEvery bounds how often views are replaced, because a member may lag in thousands of units that change one by one.
const publishEvery = 100 * time.Millisecond

// change is a change of the host's policies.
type change struct {
	at time.Time
	// before is the snapshot before the change; nil if it is not kept any more.
	before *policy.Snapshot
	names  []string // of the units, sorted
}

func newLagTracker(now func() time.Time) *lagTracker {
	return &lagTracker{now: now, lags: map[string]audit.Lags{}, touched: map[string]bool{}}
}

// lagsOf returns the lags of a member, or nil if it has none.
func (r *lagTracker) lagsOf(member string) audit.Lags {
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

// recordChange records that the host's policies changed.
func (r *lagTracker) recordChange(before, after *policy.Snapshot, at time.Time) {
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
	r.releaseSnapshots()
}

// releaseSnapshots removes the snapshots that no lag refers to.
func (r *lagTracker) releaseSnapshots() {
	for i := range max(len(r.changes)-keptEpochs, 0) {
		if !slices.Contains(r.held, r.changes[i].before) {
			r.changes[i].before = nil
		}
	}
}

// observe processes a change of the status of a resource. before or after is nil if the resource did not or does not exist.
func (r *lagTracker) observe(before, after *v1alpha1.ProtectedResource, present *policy.Snapshot) {
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
		if r.observeUnit(resource, is, was, present, now) {
			r.touch(string(is.Name))
		}
	}
	if after.Status.Unlisted() > 0 {
		return // a member that the status does not list may have what it had
	}
	for i := range had {
		was := &had[i]
		if stateOf(has, was.Name) == nil && r.endLag(string(was.Name), resource, now) {
			r.touch(string(was.Name)) // it has nothing and needs nothing
		}
	}
}

func (r *lagTracker) touch(member string) {
	r.touched[member] = true
	r.dirty.Store(true)
}

// forgetResource removes the lags of a resource that was deleted.
func (r *lagTracker) forgetResource(resource string) {
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

// observeUnit processes the state of one member, and reports whether its lags changed.
func (r *lagTracker) observeUnit(resource string, is, was *v1alpha1.ClusterState, present *policy.Snapshot, now time.Time) bool {
	member := string(is.Name)
	has := is.ObservedRevision
	blind := is.State == v1alpha1.MemberUnreachable || is.State == v1alpha1.MemberQuarantined
	if has == "" && blind && was != nil {
		has = was.ObservedRevision // the last revision that was read back
	}
	if has == is.DesiredRevision && is.State != v1alpha1.MemberDowngraded {
		return r.endLag(member, resource, since(is, now))
	}
	lag := audit.Lag{From: now}
	switch {
	case is.State == v1alpha1.MemberDowngraded:
		lag.Kind, lag.From = audit.LagOpen, since(is, now)
	case has == "" && !blind:
		lag.Kind, lag.From = audit.LagNothing, r.lagStart(resource, was, now)
	case is.State == v1alpha1.MemberDrifted:
		lag.From = since(is, now)
	case was != nil && was.ObservedRevision == has && was.DesiredRevision == has:
		lag = r.olderPolicies(resource, was, present, now)
	case was != nil && was.ObservedRevision == has:
		return false // the lag has not changed
	}
	return r.startLag(member, resource, lag)
}

// olderPolicies returns the policies that a member had realized before a change: those before the first change since then.
func (r *lagTracker) olderPolicies(resource string, was *v1alpha1.ClusterState, present *policy.Snapshot, now time.Time) audit.Lag {
	synced := since(was, now)
	for i := range r.changes {
		c := &r.changes[i]
		if !c.at.After(synced) || !c.changes(resource) {
			continue
		}
		lag := audit.Lag{From: c.at, At: c.at.Add(-1)}
		if has := r.policiesBefore(i, resource); has != nil {
			lag.Kind, lag.Has = audit.LagOlder, has
		}
		return lag
	}
	// No policy changed: a grant or a temporary audit has begun or ended.
	if present != nil && slices.Contains(present.ChangedUnitsBetween(synced, now), resource) && r.keepSnapshot(present) {
		return audit.Lag{Kind: audit.LagOlder, From: synced, Has: present, At: synced}
	}
	return audit.Lag{From: now}
}

func (c *change) changes(resource string) bool {
	_, found := slices.BinarySearch(c.names, resource)
	return found
}

// policiesBefore returns the policies in force before change i, or an earlier snapshot that is kept already and in which the resource was
// the same. It returns nil if no such snapshot is kept and keptPolicies are kept already.
func (r *lagTracker) policiesBefore(i int, resource string) *policy.Snapshot {
	for j := i; j >= 0; j-- {
		if s := r.changes[j].before; s != nil && slices.Contains(r.held, s) {
			return s
		}
		if j > 0 && r.changes[j-1].changes(resource) {
			break
		}
	}
	if s := r.changes[i].before; s != nil && r.keepSnapshot(s) {
		return s
	}
	return nil
}

// lagStart returns when the member first needed the resource: the time of the newest change of policies about it, or now if that is
// not known.
func (r *lagTracker) lagStart(resource string, was *v1alpha1.ClusterState, now time.Time) time.Time {
	for i := len(r.changes) - 1; was == nil && i >= 0; i-- {
		if r.changes[i].changes(resource) {
			return r.changes[i].at
		}
	}
	return now
}

// keepSnapshot keeps a snapshot. It returns false if too many are kept.
func (r *lagTracker) keepSnapshot(s *policy.Snapshot) bool {
	if slices.Contains(r.held, s) {
		return true
	}
	if len(r.held) >= keptPolicies {
		return false
	}
	r.held = append(r.held, s)
	return true
}

// startLag starts a lag. A lag that has not ended is ended at the start of the new one.
func (r *lagTracker) startLag(member, resource string, lag audit.Lag) bool {
	r.endLag(member, resource, lag.From)
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

// endLag ends the current lag. It returns false if there is none.
func (r *lagTracker) endLag(member, resource string, at time.Time) bool {
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

// publish removes old lags and replaces the views. Views share the lists, which are never changed.
func (r *lagTracker) publish(now time.Time) {
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
	r.releaseSnapshots()
	r.views.Store(&views)
	r.dirty.Store(false)
}

// statesOf returns the members of a status, sorted by name, or none for nil.
func statesOf(p *v1alpha1.ProtectedResource) []v1alpha1.ClusterState {
	if p == nil {
		return nil
	}
	return p.Status.States()
}

// stateOf returns the state of a member among states that are sorted by name, or nil.
func stateOf(states []v1alpha1.ClusterState, member v1alpha1.ClusterName) *v1alpha1.ClusterState {
	i, found := slices.BinarySearchFunc(states, member, func(c v1alpha1.ClusterState, name v1alpha1.ClusterName) int { return cmp.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &states[i]
}

// since returns when a state began, by the adapter's clock, which may be ahead; at most now.
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
