// Package patience bounds how long something is put off so that nobody is refused in between. It knows names and times, and
// nothing of what waits.
package patience

import (
	"sync"
	"time"
)

// Patience remembers since when each name waits. Its zero value is ready, and it is safe for concurrent use.
type Patience struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Waits tells whether a name that has a reason to wait still may, for at most so long from the first time on. Without a
// reason it is forgotten.
func (p *Patience) Waits(name string, reason bool, now time.Time, most time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !reason {
		delete(p.since, name)
		return false
	}
	since, known := p.since[name]
	if !known {
		if p.since == nil {
			p.since = map[string]time.Time{}
		}
		p.since[name], since = now, now
	}
	return now.Sub(since) < most
}
