// Package grace tracks grace periods: for how long an action may still be deferred since the first time that there was a reason
// to defer it.
package grace

import (
	"sync"
	"time"
)

// Tracker records since when each name has a reason to be deferred. Its zero value is ready to use, and it is safe for concurrent use.
type Tracker struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// InGrace reports whether a name may still be deferred: there is a reason, and less than limit has passed since the first call with
// one. A call without a reason resets the name.
func (t *Tracker) InGrace(name string, reason bool, now time.Time, limit time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !reason {
		delete(t.since, name)
		return false
	}
	since, known := t.since[name]
	if !known {
		if t.since == nil {
			t.since = map[string]time.Time{}
		}
		t.since[name], since = now, now
	}
	return now.Sub(since) < limit
}

// Exceeded reports whether a name has been deferred for limit or longer.
func (t *Tracker) Exceeded(name string, now time.Time, limit time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, known := t.since[name]
	return known && now.Sub(since) >= limit
}
