package portal

import (
	"context"
	"sync"
	"time"
)

const (
	// questionsAtOnce is how many of a person's questions about flows are answered at the same time. A store has few readers (a file
	// has four), and one person must not have them all for as long as questions may take.
	questionsAtOnce = 3
	// turnPatience is how long a question waits for its turn.
	turnPatience = 8 * time.Second
)

// turns lets each caller do atOnce things at the same time; further ones wait.
type turns struct {
	atOnce int

	mu     sync.Mutex
	people map[string]*turn // who does something or waits
}

type turn struct {
	slots chan struct{}
	users int
}

// take waits for a turn. False: there was none in time. Whoever has it calls done.
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
