package protectedresource

import (
	"slices"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/federation"
)

// settling are objects that were just written. KubeFed writes their status some 20 ms after the members have them; one that is changed
// between is looked at again only after a second (a constant in its code), and so late is the change in the members then.
// Whoever changes an object again at once, as a revocation of a grant that was just given does, is faster when he waits.
//
// This is about another process, so the time is the machine's.
type settling struct {
	mu    sync.Mutex
	wrote map[string]time.Time
}

func (s *settling) written(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrote == nil {
		s.wrote = map[string]time.Time{}
	}
	s.wrote[object] = time.Now()
}

// forget an object that is gone.
func (s *settling) forget(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wrote, object)
}

// unsettled tells whether one of the objects is to be changed while KubeFed has not said yet what came of the last change, which
// it is given so much time for.
func (s *settling) unsettled(before, next []*federation.Object, limit time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, o := range next {
		name := o.Key()
		at, just := s.wrote[name]
		if !just {
			continue
		}
		said := slices.ContainsFunc(before, func(e *federation.Object) bool { return e.Key() == name && e.Propagation.Seen })
		if said || time.Since(at) >= limit {
			delete(s.wrote, name)
			continue
		}
		found = true
	}
	return found
}
