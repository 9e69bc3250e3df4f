package protectedresource

import (
	"slices"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/federation"
)

// recentWrites tracks objects that were just written. KubeFed writes their status about 20 ms after the members have
// them. An object that changes in between is processed again only after a second (a constant in KubeFed), which delays
// the change in the members. A second change, such as the revocation of a new grant, is therefore faster if it waits
// for the status. The times are those of the system clock, because another process causes the delay.
type recentWrites struct {
	mu    sync.Mutex
	wrote map[string]time.Time
}

// written records a write of an object.
func (s *recentWrites) written(object string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrote == nil {
		s.wrote = map[string]time.Time{}
	}
	s.wrote[object] = now
}

// forget removes an object that was deleted.
func (s *recentWrites) forget(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wrote, object)
}

// inFlight reports whether one of the objects would be changed while KubeFed has not yet reported on its last change,
// for at most limit after that change.
func (s *recentWrites) inFlight(before, next []*federation.Object, now time.Time, limit time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, o := range next {
		name := o.Key()
		writtenAt, recent := s.wrote[name]
		if !recent {
			continue
		}
		reported := slices.ContainsFunc(before, func(e *federation.Object) bool { return e.Key() == name && e.Handled() })
		if reported || now.Sub(writtenAt) >= limit {
			delete(s.wrote, name)
			continue
		}
		found = true
	}
	return found
}
