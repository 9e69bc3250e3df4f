package core

import (
	"context"
	"sync"
	"time"
)

const (
	// QueriesPerCaller is the number of flow queries of one person that run at the same time. A store has few readers (a file has
	// four), and one person must not occupy all of them.
	QueriesPerCaller = 3
	// queryWait is how long a query waits for earlier ones of the same person.
	queryWait = 8 * time.Second
)

// callerLimit limits the number of operations that each caller runs at the same time to perCaller. Further ones wait.
type callerLimit struct {
	perCaller int

	mu      sync.Mutex
	callers map[string]*callerSlots // the callers that run or wait for an operation
}

type callerSlots struct {
	slots chan struct{}
	users int
}

// acquire waits until the caller may run an operation. It returns false if that was not possible in time. Otherwise the caller must
// call done afterwards.
func (t *callerLimit) acquire(ctx context.Context, caller string) (done func(), ok bool) {
	t.mu.Lock()
	x := t.callers[caller]
	if x == nil {
		x = &callerSlots{slots: make(chan struct{}, t.perCaller)}
		if t.callers == nil {
			t.callers = map[string]*callerSlots{}
		}
		t.callers[caller] = x
	}
	x.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(t.callers, caller)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, queryWait)
	defer cancel()
	select {
	case x.slots <- struct{}{}:
		return func() { <-x.slots; leave() }, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}
