package audittest

import (
	"errors"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

func leaseExcludes(t *testing.T, s audit.Store) {
	lease := func(source, holder string, ttl time.Duration, want bool) {
		t.Helper()
		got, err := s.Lease(t.Context(), source, holder, ttl)
		if err != nil {
			t.Fatalf("Lease: %v", err)
		}
		if got != want {
			t.Errorf("Lease(%s, %s, %s): got %v, want %v", source, holder, ttl, got, want)
		}
	}
	release := func(source, holder string) {
		t.Helper()
		if err := s.Release(t.Context(), source, holder); err != nil {
			t.Fatalf("Release: %v", err)
		}
	}
	holder := func(source, want string) {
		t.Helper()
		if got, err := s.Holder(t.Context(), source); err != nil || got != want {
			t.Errorf("Holder(%s) = %q, %v, want %q", source, got, err, want)
		}
	}
	holder("m1", "")
	lease("m1", "a", time.Hour, true)
	holder("m1", "a")
	lease("m1", "b", time.Hour, false)
	lease("m1", "a", time.Hour, true) // renewal
	lease("m2", "b", time.Hour, true) // another source
	release("m1", "b")                // b does not hold the lease
	lease("m1", "b", time.Hour, false)
	holder("m1", "a")
	holder("m2", "b")

	b := &audit.Batch{
		ID:        "1",
		Holder:    "b",
		Rollups:   []audit.Rollup{rollup(0, 1, Edge())},
		Positions: []audit.Position{{Source: "m2", Time: T0}, {Source: audit.IstioSource("m2"), Time: T0}, {Source: "m1", Time: T0}},
	}
	if err := s.Append(t.Context(), b); !errors.Is(err, audit.ErrNotHolder) {
		t.Errorf("Append without the lease: got %v, want ErrNotHolder", err)
	}
	wantConnections(t, s, audit.ConnectionQuery{})
	if r, err := s.Resume(t.Context(), "m2"); err != nil || !r.Position.IsZero() {
		t.Errorf("got Resume = %+v, %v; want nothing of the rejected batch", r, err)
	}
	release("m1", "a")
	holder("m1", "")
	lease("m1", "b", time.Hour, true)
	mustAppend(t, s, b)
	wantConnections(t, s, audit.ConnectionQuery{}, connection(1, 0, 0, Edge()))
	release("m1", "b")
	mustAppend(t, s, b) // the batch was stored before, so a retry after a lost answer succeeds
	wantConnections(t, s, audit.ConnectionQuery{}, connection(1, 0, 0, Edge()))
	lease("m1", "c", time.Nanosecond, true) // expires at once
	for deadline := time.Now().Add(10 * time.Second); ; {
		got, err := s.Lease(t.Context(), "m1", "d", time.Hour)
		if err != nil {
			t.Fatalf("Lease: %v", err)
		}
		if got {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an expired lease cannot be taken by another holder")
		}
	}
}
