package portal

import (
	"context"
	"sync"
	"time"
)

const (
	// questionsAtOnce is the number of flow queries of one person that run at the same time. A store has few readers (a file has
	// four), and one person must not occupy all of them.
	questionsAtOnce = 3
	// turnPatience is how long a query waits for earlier ones of the same person.
	turnPatience = 8 * time.Second
)

// turns limits the number of operations that each caller runs at the same time to atOnce. Further ones wait.
type turns struct {
	atOnce int

	mu     sync.Mutex
	people map[string]*turn // the callers that run or wait for an operation
}

type turn struct {
	slots chan struct{}
	users int
}

// take waits until the caller may run an operation. It returns false if that was not possible in time. Otherwise the caller must
// call done afterwards.
func (t *turns) take(ctx context.Context, caller string) (done func(), ok bool) {
	t.mu.Lock()
	x := t.people[caller]
	if x == nil {
		x = &turn{slots: make(chan struct{}, t.atOnce)}
		if t.people == nil {
			t.people = map[string]*turn{}
		}
		t.people[caller] = x
	}
	x.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if x.users--; x.users == 0 {
			delete(t.people, caller)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	select {
	case x.slots <- struct{}{}:
		return func() { <-x.slots; leave() }, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}
