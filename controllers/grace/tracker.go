// Package grace tracks grace periods: for how long an action may still be deferred since the first time that there was a reason
// to defer it.
package grace

import (
	"sync"
	"time"
)

// Tracker remembers since when each name waits. Its zero value is ready, and it is safe for concurrent use.
type Tracker struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// InGrace tells whether a name that has a reason to wait still may, for at most so long from the first time on. Without a
// reason it is forgotten.
func (p *Tracker) InGrace(name string, reason bool, now time.Time, most time.Duration) bool {
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
