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
			t.Fatalf("the first goes on: %v %v", a, err)
		}
		other, bob := call, call
		other.Digest, bob.Person = "e", "bob"
		if _, err := begin(call); !errors.Is(err, idempotency.ErrUnderWay) {
			t.Errorf("the second waits: %v", err)
		}
		if _, err := begin(other); !errors.Is(err, idempotency.ErrOther) {
			t.Errorf("another call: %v", err)
		}
		if a, err := begin(bob); a != nil || err != nil {
			t.Errorf("keys are a person's own: %v %v", a, err)
		}
		if err := s.Drop(ctx, call); err != nil {
			t.Fatal(err)
		}
		if a, err := begin(call); a != nil || err != nil {
			t.Errorf("after a failure it can be tried again: %v %v", a, err)
		}
		want := idempotency.Answer{Status: 201, Kind: "application/json", Body: []byte(`{"id":"1"}`)}
		if err := s.Finish(ctx, call, want); err != nil {
			t.Fatal(err)
		}
		got, err := begin(call)
		if err != nil || got == nil || cmp.Diff(want, *got) != "" {
			t.Errorf("the same answer again: %+v %v", got, err)
		}
		if err := s.Drop(ctx, call); err != nil {
			t.Fatal(err)
		}
		if got, err := begin(call); err != nil || got == nil {
			t.Errorf("what was answered is not dropped: %v %v", got, err)
		}
		// A program that died in the middle holds nobody up for ever; its late answer counts no more.
		died, later := bob, bob
		later.At = now.Add(2 * idempotency.UnderWay)
		if a, err := begin(later); a != nil || err != nil {
			t.Errorf("taken over: %v %v", a, err)
		}
		if err := s.Finish(ctx, died, want); err != nil {
			t.Fatal(err)
		}
		if _, err := begin(later); !errors.Is(err, idempotency.ErrUnderWay) {
			t.Errorf("the late answer is not the new call's: %v", err)
		}
		if err := s.Prune(ctx, now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if a, err := begin(call); a != nil || err != nil {
			t.Errorf("what was pruned is forgotten: %v %v", a, err)
		}
	})
}

// TestAtTheSameInstant: of many only one goes on.
func TestAtTheSameInstant(t *testing.T) {
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
			t.Errorf("%d calls went on", through)
		}
	})
}
