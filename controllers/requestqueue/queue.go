// Package requestqueue passes reconcile requests with priorities from watches to a controller's queue. Unlike controller-runtime's
// event handlers it lets the caller update the policy cache first and enqueue afterwards, in that order.
package requestqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Priorities. The queue hands out the higher first. They say what a change looks like from outside; what it is shows when
// the unit was compiled.
const (
	// Downgrade: somebody wants something open that is closed.
	Downgrade = 300
	// Revocation: somebody may lose access.
	Revocation = 200
	// Admitted: it waited for its turn, which is now. There are never many, and KubeFed may have nothing else to do.
	Admitted = 150
	// Grant: any other change that somebody asked for.
	Grant = 100
	// Observed: nobody asked for anything, but something happened in the host or in a member that has to be told.
	Observed = 0
	// StatusUpdate: what is under way has to be told, if it still is when there is nothing else to do.
	StatusUpdate = -50
	// Bulk: everything is looked at again, for example at the start.
	Bulk = -100
)

// MaxIndividual names at once are not what somebody waits for; he waits for all of them.
const MaxIndividual = 40

// Queue collects names until its controller starts, and passes them on from then on. It is safe for concurrent use.
type Queue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[string]
	early map[string]int
	// asked are names that somebody waits for, and when he asked.
	asked map[string]pendingRequest
	last  uint64
}

// pendingRequest is the last of several about one name.
type pendingRequest struct {
	number uint64
	at     time.Time
}

// New makes an empty feed.
func New() *Queue { return &Queue{early: map[string]int{}, asked: map[string]pendingRequest{}} }

// Add asks for the reconciliation of names with a priority. Many grants at once are bulk.
func (f *Queue) Add(priority int, names ...string) {
	if priority == Grant && len(names) > MaxIndividual {
		priority = Bulk
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue == nil {
		for _, n := range names {
			if before, ok := f.early[n]; !ok || before < priority {
				f.early[n] = priority
			}
		}
		return
	}
	if priority >= Grant && priority != Admitted && len(names) <= MaxIndividual {
		f.last++
		now := time.Now()
		for _, n := range names {
			f.asked[n] = pendingRequest{f.last, now}
		}
	}
	push(f.queue, priority, names)
}

// Pending tells whether somebody waits for a name by itself, by a number that Answered takes; 0: nobody does.
func (f *Queue) Pending(name string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[name].number
}

// PendingSince is when he did; zero: nobody waits for it by itself.
func (f *Queue) PendingSince(name string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[name].at
}

// Complete: what was asked for until then is done. Who asked again meanwhile still waits.
func (f *Queue) Complete(name string, asked uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked[name].number == asked {
		delete(f.asked, name)
	}
}

// Source is what the controller watches. It starts when ready returns.
func (f *Queue) Source(ready func(context.Context) error) source.TypedSource[string] {
	return source.TypedFunc[string](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
		if err := ready(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queue = q
		byPriority := map[int][]string{}
		for n, priority := range f.early {
			if priority < Revocation {
				priority = Bulk // whoever asked did so of the process before
			}
			byPriority[priority] = append(byPriority[priority], n)
		}
		f.early = nil
		for priority, names := range byPriority {
			push(q, priority, names)
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
