package host

import (
	"context"
	"sync"
)

// nameQueue contains names in the order in which they were added, each once. Its size is bounded by the number of different names.
type nameQueue struct {
	mu      sync.Mutex
	waiting map[string]struct{}
	order   []string
	added   chan struct{}
}

func newNameQueue() *nameQueue {
	return &nameQueue{waiting: map[string]struct{}{}, added: make(chan struct{}, 1)}
}

// add appends a name that is not in the queue. It never blocks.
func (q *nameQueue) add(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, in := q.waiting[name]; in {
		return
	}
	q.waiting[name] = struct{}{}
	q.order = append(q.order, name)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// next removes the first name; false if there is none.
func (q *nameQueue) next() (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		q.order = nil
		return "", false
	}
	name := q.order[0]
	q.order = q.order[1:]
	delete(q.waiting, name)
	return name, true
}

// deliver sends the names to a channel until the context ends.
func (q *nameQueue) deliver(ctx context.Context, to chan<- string) {
	for {
		name, ok := q.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-q.added:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case to <- name:
		}
	}
}
