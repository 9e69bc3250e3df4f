// Package feed carries names from watches to a controller's queue. Unlike controller-runtime's event handlers it lets
// one place update the index first and then say, in that order, what has to be reconciled because of it.
package feed

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Priorities. The queue hands out the higher first.
const (
	// Urgent: somebody changed something, or a member did.
	Urgent = 0
	// Bulk: everything is looked at again, for example at the start.
	Bulk = -100
)

// Feed collects names until its controller starts, and passes them on from then on. It is safe for concurrent use.
type Feed struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[string]
	early map[string]struct{}
}

// New makes an empty feed.
func New() *Feed { return &Feed{early: map[string]struct{}{}} }

// Add asks for the reconciliation of names with a priority.
func (f *Feed) Add(priority int, names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue == nil {
		for _, n := range names {
			f.early[n] = struct{}{}
		}
		return
	}
	push(f.queue, priority, names)
}

// Source is what the controller watches. It starts when ready returns.
func (f *Feed) Source(ready func(context.Context) error) source.TypedSource[string] {
	return source.TypedFunc[string](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
		if err := ready(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queue = q
		names := make([]string, 0, len(f.early))
		for n := range f.early {
			names = append(names, n)
		}
		f.early = nil
		push(q, Bulk, names)
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
