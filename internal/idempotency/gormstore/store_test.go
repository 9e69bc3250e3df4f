package gormstore

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/idempotency"
)

func TestOnce(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx, s := t.Context(), New(databasetest.Open(t, dsn))
		now := time.Now().Truncate(time.Microsecond)
		call := idempotency.Call{Person: "alice", Key: "0123456789", Digest: "d", At: now}
		begin := func(c idempotency.Call) (*idempotency.Answer, error) { t.Helper(); return s.Begin(ctx, c) }
		if a, err := begin(call); a != nil || err != nil {
			t.Fatalf("first Begin: got %v, %v, want a claim", a, err)
		}
		other, bob := call, call
		other.Digest, bob.Person = "e", "bob"
		if _, err := begin(call); !errors.Is(err, idempotency.ErrInProgress) {
			t.Errorf("second Begin: got %v, want ErrInProgress", err)
		}
		if _, err := begin(other); !errors.Is(err, idempotency.ErrKeyReused) {
			t.Errorf("Begin of another call with the key: got %v, want ErrKeyReused", err)
		}
		if a, err := begin(bob); a != nil || err != nil {
			t.Errorf("Begin with another person's key: got %v, %v, want a claim", a, err)
		}
		if err := s.Release(ctx, call); err != nil {
			t.Fatal(err)
		}
		if a, err := begin(call); a != nil || err != nil {
			t.Errorf("Begin after Release: got %v, %v, want a new claim", a, err)
		}
		want := idempotency.Answer{Status: 201, MediaType: "application/json", Body: []byte(`{"id":"1"}`)}
		if err := s.Finish(ctx, call, want); err != nil {
			t.Fatal(err)
		}
		got, err := begin(call)
		if err != nil || got == nil || cmp.Diff(want, *got) != "" {
			t.Errorf("Begin after Finish: got %+v, %v, want the stored answer", got, err)
		}
		if err := s.Release(ctx, call); err != nil {
			t.Fatal(err)
		}
		if got, err := begin(call); err != nil || got == nil {
			t.Errorf("Begin after Release of an answered call: got %v, %v, want the answer", got, err)
		}
		// The claim of a program that crashed expires, and its late answer is ignored.
		died, later := bob, bob
		later.At = now.Add(2 * idempotency.CallTimeout)
		if a, err := begin(later); a != nil || err != nil {
			t.Errorf("Begin after CallTimeout: got %v, %v, want a new claim", a, err)
		}
		if err := s.Finish(ctx, died, want); err != nil {
			t.Fatal(err)
		}
		if _, err := begin(later); !errors.Is(err, idempotency.ErrInProgress) {
			t.Errorf("Begin after a late answer: got %v, want ErrInProgress", err)
		}
		if err := s.Prune(ctx, now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if a, err := begin(call); a != nil || err != nil {
			t.Errorf("Begin after Prune: got %v, %v, want a new claim", a, err)
		}
	})
}

// TestConcurrentBegin checks that one of many concurrent calls gets the claim.
func TestConcurrentBegin(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := New(databasetest.Open(t, dsn))
		var all sync.WaitGroup
		var mu sync.Mutex
		through := 0
		for range 8 {
			all.Go(func() {
				if a, err := s.Begin(t.Context(), idempotency.Call{Person: "alice", Key: "0123456789", Digest: "d", At: time.Now()}); a == nil && err == nil {
					mu.Lock()
					through++
					mu.Unlock()
				}
			})
		}
		if all.Wait(); through != 1 {
			t.Errorf("%d calls got the claim, want 1", through)
		}
	})
}
