package protectedresource

import (
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// slowMemory is how long a member counts as slow after it was recorded.
	slowMemory = time.Minute
	// slowShare is the inverse of the largest share of a unit's members that can be slower than the others.
	slowShare = 10
)

// slowMembers records the members that got a change later than nearly all others. The status of a unit is written when all other members
// have the unit, and does not wait for them. Fleets of fewer than ten members have none. The zero value is usable.
type slowMembers struct {
	mu    sync.Mutex
	until map[v1alpha1.ClusterName]time.Time
}

// recordPending records the members of a unit that are still in the state Pending after the time for which its status may be deferred, if
// these are few.
func (s *slowMembers) recordPending(states []v1alpha1.ClusterState, now time.Time) {
	pending := pendingOf(states)
	if !areFew(pending, states) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[v1alpha1.ClusterName]time.Time{}
	}
	for _, name := range pending {
		s.until[name] = now.Add(slowMemory)
	}
}

// includePending reports whether a unit has members in the state Pending, and all of them are slow.
func (s *slowMembers) includePending(states []v1alpha1.ClusterState, now time.Time) bool {
	pending := pendingOf(states)
	if len(pending) == 0 || !areFew(pending, states) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range pending {
		if !now.Before(s.until[name]) {
			delete(s.until, name)
			return false
		}
	}
	return true
}

// areFew reports whether some members of a unit are few enough to be slower than the others.
func areFew(some []v1alpha1.ClusterName, all []v1alpha1.ClusterState) bool {
	return len(some)*slowShare <= len(all)
}

// pendingOf returns the members in the state Pending.
func pendingOf(states []v1alpha1.ClusterState) []v1alpha1.ClusterName {
	var out []v1alpha1.ClusterName
	for i := range states {
		if states[i].State == v1alpha1.MemberPending {
			out = append(out, states[i].Name)
		}
	}
	return out
}
