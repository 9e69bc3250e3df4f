package requestqueue

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

const (
	// pauseAfterRequest is how long background requests pause after an individual request. In this time, a change is read back in most fleets.
	pauseAfterRequest = 500 * time.Millisecond
	// pauseReserve is the time for which background requests that did not pause for long may pause. It grows by half of the time that passes, also while
	// they pause: they pause for at most twice as long at a time, and in the long run for at most half of the time.
	pauseReserve = 10 * time.Second
	// recentAge is how long a name that was requested with the priority Observed or a higher one counts as recent, at least.
	recentAge = 10 * time.Second
)

// isBackground reports whether requests with a priority are background requests, which only report something.
func isBackground(priority int) bool { return priority == StatusUpdate || priority == Bulk }

// Background delays background requests while an individual request is handled, which is one of at most MaxIndividual names at a time with the
// priority Grant or a higher one. When a member is lost, the status of every resource and of every policy is written; the host's API server and the adapter
// have less time for a change then. Several queues share a Background: an individual request in one of them delays the background requests of all.
// It is safe for concurrent use.
type Background struct {
	mu sync.Mutex
	// requestedUntil is the end of the pause that the last individual request requires, and pausedUntil the end of the current pause.
	requestedUntil, pausedUntil time.Time
	// reserve is the time, in milliseconds, for which background requests may still pause.
	reserve *rate.Limiter
}

// NewBackground returns a Background that delays nothing yet.
func NewBackground() *Background {
	return &Background{reserve: rate.NewLimiter(rate.Limit(time.Second.Milliseconds())/2, int(pauseReserve.Milliseconds()))}
}

// request records that an individual request was made now.
func (b *Background) request() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requestedUntil = clock.RealClock{}.Now().Add(pauseAfterRequest)
}

// pause returns how long background requests that wait have to pause from now on; if they may be passed, it is not positive. It begins a pause, or
// extends it, if one is requested and the reserve is sufficient.
func (b *Background) pause() time.Duration {
	now := clock.RealClock{}.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pausedUntil.Before(now) {
		b.pausedUntil = now
	}
	if more := b.requestedUntil.Sub(b.pausedUntil); more > 0 && b.reserve.AllowN(now, int(more.Milliseconds())) {
		b.pausedUntil = b.requestedUntil
	}
	return b.pausedUntil.Sub(now)
}

// backgroundRequests are the background requests of a queue that were not passed to its controller yet: one for each name, with the higher of its priorities.
type backgroundRequests struct {
	priorities map[string]int
	// order contains the names of each priority in the order in which they were added, and names that do not wait any more.
	order map[int][]string
}

// add adds a request. A name that waits with a lower priority waits with the new one.
func (w *backgroundRequests) add(priority int, name string) {
	if had, ok := w.priorities[name]; ok && had >= priority {
		return
	}
	if w.priorities == nil {
		w.priorities, w.order = map[string]int{}, map[int][]string{}
	}
	w.priorities[name] = priority
	w.order[priority] = append(w.order[priority], name)
}

// remove removes the request for a name, if there is one.
func (w *backgroundRequests) remove(name string) { delete(w.priorities, name) }

// next removes and returns the oldest of the requests with the highest priority.
func (w *backgroundRequests) next() (name string, priority int, ok bool) {
	for _, priority := range []int{StatusUpdate, Bulk} {
		for names := w.order[priority]; len(names) > 0; {
			name, names = names[0], names[1:]
			w.order[priority] = names
			if had, waits := w.priorities[name]; waits && had == priority {
				delete(w.priorities, name)
				return name, priority, true
			}
		}
	}
	return "", 0, false
}

// recentNames are the names that were added recently. A name stays recent for at least recentAge, and for less than twice that time.
type recentNames struct {
	since         time.Time
	current, last sets.Set[string]
}

// add adds a name.
func (r *recentNames) add(name string) {
	r.expire()
	if r.current == nil {
		r.current = sets.New[string]()
	}
	r.current.Insert(name)
}

// has reports whether a name was added recently.
func (r *recentNames) has(name string) bool {
	r.expire()
	return r.current.Has(name) || r.last.Has(name)
}

func (r *recentNames) expire() {
	now := clock.RealClock{}.Now()
	switch age := now.Sub(r.since); {
	case age >= 2*recentAge:
		r.since, r.current, r.last = now, nil, nil
	case age >= recentAge:
		r.since, r.current, r.last = now, nil, r.current
	}
}
