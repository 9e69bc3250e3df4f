package database

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// held is a Lookup whose first call, for key 1, has begun and waits for a signal. The value of a key above 0 is ten
// times the key.
type held struct {
	*Lookup[int, int]
	t     *testing.T
	calls [][]int
	end   chan struct{}
	all   sync.WaitGroup
}

func holdLookup(t *testing.T) *held {
	h := &held{t: t, end: make(chan struct{})}
	began := make(chan struct{})
	h.Lookup = NewLookup(func(ctx context.Context, keys []int) (map[int]int, error) {
		h.calls = append(h.calls, slices.Sorted(slices.Values(keys)))
		if len(h.calls) == 1 {
			close(began)
			<-h.end
		}
		found := map[int]int{}
		for _, k := range keys {
			if k > 0 {
				found[k] = 10 * k
			}
		}
		return found, ctx.Err()
	})
	h.ask(t.Context(), 1)
	<-began
	return h
}

// ask requests a key in the background and checks the result.
func (h *held) ask(ctx context.Context, key int) {
	h.all.Go(func() {
		v, ok, err := h.Get(ctx, key)
		if ctx.Err() == nil && (ok != (key > 0) || ok && v != 10*key || err != nil) {
			h.t.Errorf("Get(%d) = %d, %v, %v", key, v, ok, err)
		}
	})
}

// joined waits until n different keys are requested in the call after the one in progress.
func (h *held) joined(n int) {
	for {
		h.mu.Lock()
		enough := h.next != nil && len(h.next.keys) == n
		h.mu.Unlock()
		if enough {
			return
		}
		runtime.Gosched()
	}
}

func (h *held) finish(want ...[]int) {
	h.t.Helper()
	close(h.end)
	h.all.Wait()
	if !slices.EqualFunc(h.calls, want, slices.Equal) {
		h.t.Errorf("got calls %v, want %v", h.calls, want)
	}
}

// TestLookupReadsAfterTheRequest checks that a caller that arrives during a call does not get its result, which may be
// older.
func TestLookupReadsAfterTheRequest(t *testing.T) {
	h := holdLookup(t)
	h.ask(t.Context(), 1)
	h.joined(1)
	h.finish([]int{1}, []int{1})
}

func TestLookupReturnsEachKeysValue(t *testing.T) {
	h := holdLookup(t)
	for i, k := range []int{2, 3, -1} {
		h.ask(t.Context(), k)
		h.joined(i + 1)
	}
	h.finish([]int{1}, []int{-1, 2, 3})
}

// TestLookupOutlivesItsLeader cancels the caller that leads a call which another caller has joined.
func TestLookupOutlivesItsLeader(t *testing.T) {
	h := holdLookup(t)
	gone, cancel := context.WithCancel(t.Context())
	h.ask(gone, 2)
	h.joined(1)
	h.ask(t.Context(), 3)
	h.joined(2)
	cancel()
	h.finish([]int{1}, []int{2, 3})
}

func TestLookupReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	l := NewLookup(func(context.Context, []int) (map[int]int, error) { return nil, broken })
	if _, ok, err := l.Get(t.Context(), 1); ok || !errors.Is(err, broken) {
		t.Error(ok, err)
	}
}

// TestLookupThatPanics checks that a panic leaves no caller waiting.
func TestLookupThatPanics(t *testing.T) {
	panics := true
	l := NewLookup(func(context.Context, []int) (map[int]int, error) {
		if panics {
			panic("no")
		}
		return map[int]int{1: 1}, nil
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Get did not panic, want the panic of the read function")
			}
		}()
		_, _, _ = l.Get(t.Context(), 1)
	}()
	panics = false
	if _, ok, err := l.Get(t.Context(), 1); !ok || err != nil {
		t.Error(ok, err)
	}
}
