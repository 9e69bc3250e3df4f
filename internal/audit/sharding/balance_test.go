package sharding

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memoryLeases implements Leases in memory, with the test's fake clock. The stores' leases have a conformance suite of their own.
type memoryLeases struct {
	mu   sync.Mutex
	held map[string]lease
}

type lease struct {
	holder string
	until  time.Time
}

func (m *memoryLeases) Lease(_ context.Context, source, holder string, ttl time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.held[source]; l.holder != holder && time.Now().Before(l.until) {
		return false, nil
	}
	m.held[source] = lease{holder, time.Now().Add(ttl)}
	return true, nil
}

func (m *memoryLeases) Release(_ context.Context, source, holder string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[source].holder == holder {
		delete(m.held, source)
	}
	return nil
}

func (m *memoryLeases) Holder(_ context.Context, source string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.held[source]; time.Now().Before(l.until) {
		return l.holder, nil
	}
	return "", nil
}

// TestBalanceMovesMembersToNewCollectors starts three collectors one after the other. They end with two members each, no further
// member moves, and no member is followed by two collectors at once.
func TestBalanceMovesMembersToNewCollectors(t *testing.T) {
	synctest.Test(t, balanceMovesMembersToNewCollectors)
}

func balanceMovesMembersToNewCollectors(t *testing.T) {
	store := &memoryLeases{held: map[string]lease{}}
	ctx, stop := context.WithCancel(t.Context())
	var everybody sync.WaitGroup
	defer everybody.Wait()
	defer stop()
	var mu sync.Mutex
	by, moves := map[string]string{}, 0
	counts := func() (map[string]int, int) {
		mu.Lock()
		defer mu.Unlock()
		out := map[string]int{}
		for _, name := range by {
			out[name]++
		}
		return out, moves
	}
	until := func(what string, want map[string]int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			got, _ := counts()
			if maps.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v, want %v", what, got, want)
			}
		}
	}
	begin := func(name string) {
		s := newSharder(t, store, name)
		everybody.Go(func() { s.Balance(ctx) })
		for i := range 6 {
			source := fmt.Sprint("m", i)
			everybody.Go(func() {
				s.Run(ctx, source, func(ctx context.Context, _ string) {
					mu.Lock()
					if other := by[source]; other != "" {
						t.Errorf("%s follows %s while %s does", name, source, other)
					}
					by[source] = name
					moves++
					mu.Unlock()
					<-ctx.Done()
					mu.Lock()
					delete(by, source)
					mu.Unlock()
				})
			})
		}
	}
	begin("a")
	until("the first has all", map[string]int{"a": 6})
	begin("b")
	until("the second has half", map[string]int{"a": 3, "b": 3})
	begin("c")
	until("the third has a third", map[string]int{"a": 2, "b": 2, "c": 2})
	_, before := counts()
	time.Sleep(20 * ttl) // on the fake clock
	if got, after := counts(); after != before || len(got) != 3 {
		t.Errorf("%d members moved after the numbers were even: %v; want none, and three collectors", after-before, got)
	}
}
