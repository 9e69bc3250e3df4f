// Package requestqueue passes reconcile requests with priorities from watches to a controller's queue. Unlike controller-runtime's
// event handlers it lets the caller update the policy cache first and enqueue afterwards, in that order.
package requestqueue

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Priorities of requests; the queue returns the highest first. They are derived from the object that changed, before the unit is compiled.
// Package policycache determines the priority of a changed object (priority.go). Package writequeue has the priorities of writes, which are
// derived from the compiled unit.
const (
	// Opening is the priority of a change by which a member may have to enforce less than before.
	Opening = 300
	// Revocation is the priority of a change by which a client may lose access.
	Revocation = 200
	// Admitted is the priority of a unit that the write queue admitted. Few units have it at a time; a delay could leave KubeFed
	// idle.
	Admitted = 150
	// Grant is the priority of a requested change that neither opens what was closed nor revokes access.
	Grant = 100
	// Observed is the priority of a change in the host or in a member that no person requested, and that has to be reported.
	Observed = 0
	// StatusUpdate is the priority of a reconcile that reports only progress. It is low, so that intermediate progress is not
	// reported if the change is complete first.
	StatusUpdate = -50
	// BulkChange is the priority of a change that concerns more than MaxIndividual names, such as that of a class, and of everything at the start. Some
	// of it may open or revoke, which is known only when the unit was compiled.
	BulkChange = -75
	// Bulk is the priority of a reconcile of everything to report something else, for example that a member was lost.
	Bulk = -100
)

// MaxIndividual is the largest number of names in one call of Add that are treated as individual requests of users. A larger call is a
// bulk change, for which no single name is urgent.
const MaxIndividual = 40

// Queue collects names until its controller starts, and passes them to the controller's queue from then on. It passes background requests only as fast as
// the controller handles them, and not while Background delays them. It is safe for concurrent use.
type Queue struct {
	clock      clock.PassiveClock
	background *Background

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[string]
	early map[string]int
	// pending are the names that were requested individually, and when.
	pending map[string]pendingRequest
	last    uint64
	// recent are the names whose background requests are passed at once, because they may complete a change.
	recent recentNames
	// waiting are the background requests that were not passed yet, and passed are the names of those that were and are not reconciled yet.
	waiting backgroundRequests
	passed  sets.Set[string]
	// maxPassed bounds the number of these names; 0 means that background requests are passed at once.
	maxPassed int
	// resumeScheduled reports whether a timer runs that ends with the pause.
	resumeScheduled bool
	// gauge shows the number of the requests that wait.
	gauge prometheus.Gauge
}

// pendingRequest is the last of several requests for one name.
type pendingRequest struct {
	number uint64
	at     time.Time
}

// New returns an empty queue. PendingSince returns times of the clock, which therefore has to be that of the controller.
func New(c clock.PassiveClock) *Queue { return NewSharing(c, NewBackground()) }

// NewSharing returns a queue as New does, whose background requests are delayed together with those of other queues.
func NewSharing(c clock.PassiveClock, b *Background) *Queue {
	return &Queue{clock: c, background: b, early: map[string]int{}, pending: map[string]pendingRequest{}, passed: sets.New[string]()}
}

// Add requests the reconciliation of names with a priority. More than MaxIndividual grants at once get the priority BulkChange.
func (q *Queue) Add(priority int, names ...string) {
	if priority == Grant && len(names) > MaxIndividual {
		priority = BulkChange
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue == nil {
		for _, n := range names {
			if before, ok := q.early[n]; !ok || before < priority {
				q.early[n] = priority
			}
		}
		return
	}
	if priority >= Grant && priority != Admitted && len(names) > 0 && len(names) <= MaxIndividual {
		q.last++
		now := q.clock.Now()
		for _, n := range names {
			q.pending[n] = pendingRequest{q.last, now}
		}
		q.background.request()
	}
	q.pass(priority, names)
}

// pass passes requests to the controller's queue, or keeps them until it has time for them. The caller must hold the lock.
func (q *Queue) pass(priority int, names []string) {
	if q.maxPassed == 0 {
		push(q.queue, priority, names)
		return
	}
	for _, n := range names {
		switch {
		case priority >= Observed:
			q.waiting.remove(n)
			q.recent.add(n)
			push(q.queue, priority, []string{n})
		case !isBackground(priority):
			q.waiting.remove(n)
			push(q.queue, priority, []string{n})
		case q.recent.has(n), q.passed.Has(n):
			push(q.queue, priority, []string{n})
		default:
			q.waiting.add(priority, n)
		}
	}
	q.passWaiting()
}

// passWaiting passes background requests that wait, as many as the controller can begin to reconcile. The caller must hold the lock.
func (q *Queue) passWaiting() {
	defer func() { q.gauge.Set(float64(len(q.waiting.priorities))) }()
	for len(q.passed) < q.maxPassed && !q.resumeScheduled {
		if len(q.waiting.priorities) == 0 {
			return
		}
		if pause := q.background.pause(); pause > 0 {
			q.resumeScheduled = true
			time.AfterFunc(pause, func() {
				q.mu.Lock()
				defer q.mu.Unlock()
				q.resumeScheduled = false
				q.passWaiting()
			})
			return
		}
		name, priority, ok := q.waiting.next()
		if !ok {
			return
		}
		q.passed.Insert(name)
		push(q.queue, priority, []string{name})
	}
}

// reconciled records that the controller reconciled a name.
func (q *Queue) reconciled(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed.Delete(name)
	q.passWaiting()
}

// Pending returns the number of the last individual request for a name, which Complete takes, or 0.
func (q *Queue) Pending(name string) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending[name].number
}

// PendingSince returns the time of the last individual request for a name, or zero.
func (q *Queue) PendingSince(name string) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending[name].at
}

// Complete ends the request with a number. A later request for the same name stays pending.
func (q *Queue) Complete(name string, number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[name].number == number {
		delete(q.pending, name)
	}
}

// Source returns the source that the controller watches. It starts when ready returns.
func (q *Queue) Source(ready func(context.Context) error) source.TypedSource[string] {
	return source.TypedFunc[string](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
		if err := ready(ctx); err != nil {
			return err
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.queue = queue
		byPriority := map[int][]string{}
		for n, priority := range q.early {
			if priority < Revocation {
				priority = BulkChange // it was requested of the previous leader
			}
			byPriority[priority] = append(byPriority[priority], n)
		}
		q.early = nil
		for priority, names := range byPriority {
			q.pass(priority, names)
		}
		return nil
	})
}

func push(q workqueue.TypedRateLimitingInterface[string], priority int, names []string) {
	if pq, ok := q.(priorityqueue.PriorityQueue[string]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, names...)
		return
	}
	for _, n := range names {
		q.Add(n)
	}
}
