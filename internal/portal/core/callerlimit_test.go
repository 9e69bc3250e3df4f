package core

import (
	"context"
	"testing"
)

// TestCallersWithoutCallsAreNotKept checks that callers are removed when they are done or have stopped waiting.
func TestCallersWithoutCallsAreNotKept(t *testing.T) {
	x := callerLimit{perCaller: QueriesPerCaller}
	var done []func()
	for range QueriesPerCaller {
		d, ok := x.acquire(t.Context(), "alice")
		if !ok {
			t.Fatal("there was a turn")
		}
		done = append(done, d)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := x.acquire(gone, "alice"); ok {
		t.Error("one turn too many")
	}
	for _, d := range done {
		d()
	}
	if len(x.callers) > 0 {
		t.Errorf("%d people are remembered", len(x.callers))
	}
}
