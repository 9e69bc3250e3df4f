package database

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

// heldLookup is one whose first call has begun, and goes on when it is told to.
func heldLookup(t *testing.T, end <-chan struct{}) (l *Lookup[int, int], calls *[][]int, first *sync.WaitGroup) {
	t.Helper()
	began := make(chan struct{})
	calls, first = &[][]int{}, &sync.WaitGroup{}
	l = NewLookup(func(_ context.Context, keys []int) (map[int]int, error) {
		*calls = append(*calls, slices.Sorted(slices.Values(keys)))
		if len(*calls) == 1 {
			close(began)
			<-end
		}
		found := map[int]int{}
		for _, k := range keys {
			if k > 0 {
				found[k] = 10 * k
			}
		}
		return found, nil
	})
	first.Go(func() {
		if v, ok, err := l.Get(context.Background(), 1); v != 10 || !ok || err != nil {
			t.Error(v, ok, err)
		}
	})
	<-began
	return l, calls, first
}

// TestLookupBeginsAfterItIsAskedFor: whoever comes while a call is under way may not have its result, which may be from before.
func TestLookupBeginsAfterItIsAskedFor(t *testing.T) {
	end := make(chan struct{})
	l, calls, all := heldLookup(t, end)
	for range 5 {
		all.Go(func() {
			if v, ok, err := l.Get(t.Context(), 1); v != 10 || !ok || err != nil {
				t.Error(v, ok, err)
			}
		})
	}
	close(end)
	all.Wait()
	if n := len(*calls); n < 2 || n > 6 {
		t.Errorf("%d calls", n)
	}
}

func TestLookupGivesEachHisOwn(t *testing.T) {
	end := make(chan struct{})
	l, calls, all := heldLookup(t, end)
	for _, k := range []int{2, 3, 3, -1} {
		all.Go(func() {
			if v, ok, err := l.Get(t.Context(), k); ok != (k > 0) || ok && v != 10*k || err != nil {
				t.Error(k, v, ok, err)
			}
		})
	}
	for asked := 0; asked < 3; { // until all have joined
		l.mu.Lock()
		if l.next != nil {
			asked = len(l.next.keys)
		}
		l.mu.Unlock()
	}
	close(end)
	all.Wait()
	if !slices.EqualFunc(*calls, [][]int{{1}, {-1, 2, 3}}, slices.Equal) && len(*calls) != 3 { // the second 3 may have come late
		t.Errorf("calls %v", *calls)
	}
}

func TestLookupIsNotCutShortByWhoeverLeads(t *testing.T) {
	end := make(chan struct{})
	l, _, all := heldLookup(t, end)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	all.Go(func() { _, _, _ = l.Get(gone, 2) }) // leads, or joins and leaves
	all.Go(func() {
		if v, ok, err := l.Get(t.Context(), 3); v != 30 || !ok || err != nil {
			t.Error(v, ok, err)
		}
	})
	close(end)
	all.Wait()
}

func TestLookupTellsErrors(t *testing.T) {
	broken := errors.New("broken")
	l := NewLookup(func(context.Context, []int) (map[int]int, error) { return nil, broken })
	if _, ok, err := l.Get(t.Context(), 1); ok || !errors.Is(err, broken) {
		t.Error(ok, err)
	}
}

// TestLookupThatPanics must leave nobody waiting.
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
				t.Error("the panic is lost")
			}
		}()
		_, _, _ = l.Get(t.Context(), 1)
	}()
	panics = false
	if _, ok, err := l.Get(t.Context(), 1); !ok || err != nil {
		t.Error(ok, err)
	}
}
