package requestqueue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("bulk", i)
	}
	return out
}

func started(t *testing.T, f *Queue) priorityqueue.PriorityQueue[string] {
	t.Helper()
	q := priorityqueue.New[string]("test")
	t.Cleanup(q.ShutDown)
	if err := f.Source(func(context.Context) error { return nil }).Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return q
}

func drain(t *testing.T, q priorityqueue.PriorityQueue[string], n int) map[string]int {
	t.Helper()
	out := map[string]int{}
	for range n {
		name, priority, _ := q.GetWithPriority()
		out[name] = priority
		q.Done(name)
	}
	return out
}

func TestManyGrantsAreBulk(t *testing.T) {
	f := New(clock.RealClock{})
	q := started(t, f)
	f.Add(Grant, names(MaxIndividual+1)...)
	f.Add(Grant, "grant")
	f.Add(Revocation, "revocation")
	f.Add(Observed, "seen")
	f.Add(Admitted, "turn")
	got := drain(t, q, MaxIndividual+5)
	for name, want := range map[string]int{"bulk0": BulkChange, "grant": Grant, "revocation": Revocation, "seen": Observed, "turn": Admitted} {
		if got[name] != want {
			t.Errorf("%s has priority %d, want %d", name, got[name], want)
		}
	}
	for name, want := range map[string]bool{"bulk0": false, "grant": true, "revocation": true, "seen": false, "turn": false} {
		if asked := f.Pending(name) != 0; asked != want {
			t.Errorf("somebody waits for %s: %v", name, asked)
		}
	}
}

func TestLaterRequestStaysPending(t *testing.T) {
	f := New(clock.RealClock{})
	started(t, f)
	f.Add(Grant, "a", "b")
	asked := f.Pending("a")
	f.Add(Grant, "a")
	if f.Complete("a", asked); f.Pending("a") == 0 {
		t.Error("what was asked for meanwhile is forgotten")
	}
	if f.Complete("b", asked); f.Pending("b") != 0 {
		t.Error("it was answered")
	}
}

// TestPendingSince checks that the time of a request is that of the controller's clock, and of the last request.
func TestPendingSince(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	f := New(now)
	started(t, f)
	for range 2 {
		f.Add(Grant, "a")
		if at := f.PendingSince("a"); !at.Equal(now.Now()) {
			t.Errorf("the request is of %s, want %s", at, now.Now())
		}
		now.SetTime(now.Now().Add(time.Hour))
	}
	if at := f.PendingSince("b"); !at.IsZero() {
		t.Errorf("a name without a request has one of %s", at)
	}
}

// TestRequestsBeforeStart: a standby replica gets all events; when it becomes the leader, revocations are first, and no request is
// pending individually.
func TestRequestsBeforeStart(t *testing.T) {
	f := New(clock.RealClock{})
	f.Add(Grant, "grant", "both")
	f.Add(Revocation, "revocation", "both")
	f.Add(Grant, "both")
	f.Add(Opening, "opening")
	q := started(t, f)
	got := drain(t, q, 4)
	for name, want := range map[string]int{"grant": BulkChange, "both": Revocation, "revocation": Revocation, "opening": Opening} {
		if got[name] != want {
			t.Errorf("%s has priority %d, want %d", name, got[name], want)
		}
	}
	if f.Pending("grant") != 0 {
		t.Error("whoever asked did so of another process")
	}
}

func TestRetries(t *testing.T) {
	r := retries()
	last := r.When("a")
	if last != minRetryDelay {
		t.Errorf("the first retry is after %s", last)
	}
	for range 100 {
		next := r.When("a")
		if next > maxRetryDelay || next < last {
			t.Fatalf("after %s it is tried again in %s", last, next)
		}
		last = next
	}
	if last != maxRetryDelay {
		t.Errorf("in the end it is tried every %s", last)
	}
	if r.Forget("a"); r.When("a") != minRetryDelay {
		t.Error("after a success it does not begin anew")
	}
}
