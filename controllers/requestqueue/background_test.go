package requestqueue

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// controlled is a queue whose controller has two workers, which work when reconcile is called.
type controlled struct {
	*Queue
	requests priorityqueue.PriorityQueue[string]
}

// background calls test with a queue in a bubble, in which time passes when everything waits.
func background(t *testing.T, test func(t *testing.T, c controlled)) {
	synctest.Test(t, func(t *testing.T) {
		c := controlled{New(clock.RealClock{}), priorityqueue.New[string]("test")}
		defer c.requests.ShutDown()
		c.limitBackground(Controller{Name: "test", Workers: 2})
		if err := c.Source(func(context.Context) error { return nil }).Start(t.Context(), c.requests); err != nil {
			t.Fatal(err)
		}
		test(t, c)
	})
}

// reconcile reconciles everything that was passed to the controller, and returns the names in order.
func (c controlled) reconcile() []string {
	var out []string
	for synctest.Wait(); c.requests.Len() > 0; synctest.Wait() {
		name, _ := c.requests.Get()
		out = append(out, name)
		c.requests.Done(name)
		c.reconciled(name)
	}
	return out
}

func (c controlled) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := c.reconcile(); !slices.Equal(got, want) {
		t.Errorf("%s: reconciled %q, want %q", when, got, want)
	}
}

// TestBackgroundRequestsPause checks that the background requests which were not passed to the controller yet wait while a change is handled, and
// that what is observed of the change does not.
func TestBackgroundRequestsPause(t *testing.T) {
	background(t, func(t *testing.T, c controlled) {
		c.Add(Bulk, "a", "b", "c", "d")
		synctest.Wait()
		if n := c.requests.Len(); n != 2 {
			t.Errorf("%d background requests were passed to two workers", n)
		}
		c.Add(Revocation, "x")
		c.expect(t, "after a revocation", "x", "a", "b")
		c.Add(Observed, "x")
		c.Add(StatusUpdate, "x", "e")
		c.expect(t, "before the end of the pause", "x")
		time.Sleep(pauseAfterRequest)
		c.expect(t, "after the pause", "e", "c", "d")
	})
}

// TestBulkChangesDoNotPause checks that a change of many names, such as the removal of a class, is passed to the controller at once: it may revoke.
func TestBulkChangesDoNotPause(t *testing.T) {
	background(t, func(t *testing.T, c controlled) {
		c.Add(Grant, "x")
		c.Add(Bulk, "a", "b")
		c.Add(BulkChange, "b", "c", "d", "e")
		c.expect(t, "after a grant and a change of many names", "x", "b", "c", "d", "e")
		time.Sleep(pauseAfterRequest)
		c.expect(t, "after the pause", "a")
	})
}

// TestBackgroundRequestsOfSeveralQueuesPause checks that a change of one kind delays the background requests of the others.
func TestBackgroundRequestsOfSeveralQueuesPause(t *testing.T) {
	background(t, func(t *testing.T, c controlled) {
		other := NewSharing(clock.RealClock{}, c.background)
		started(t, other)
		other.Add(Grant, "x")
		c.Add(Bulk, "a")
		c.expect(t, "after a grant in the other queue")
		time.Sleep(pauseAfterRequest)
		c.expect(t, "after the pause", "a")
	})
}

// TestBackgroundRequestsDoNotPauseForever checks that they get half of the time while changes are requested without end.
func TestBackgroundRequestsDoNotPauseForever(t *testing.T) {
	background(t, func(t *testing.T, c controlled) {
		const step, steps = 100 * time.Millisecond, 3000
		ran := 0
		for range steps {
			c.Add(Revocation, "x")
			c.Add(Bulk, "a")
			if slices.Contains(c.reconcile(), "a") {
				ran++
			}
			time.Sleep(step)
		}
		if share := float64(ran) / steps; share < 0.4 || share > 0.6 {
			t.Errorf("background requests were reconciled in %.2f of the time", share)
		}
	})
}

// TestBackgroundRequestsResume checks for how long they pause at a time while changes are requested without end, also after a long time in which none
// waited.
func TestBackgroundRequestsResume(t *testing.T) {
	background(t, func(t *testing.T, c controlled) {
		for range 1000 {
			c.Add(Revocation, "x")
			time.Sleep(time.Second)
		}
		began := time.Now()
		c.Add(Revocation, "x")
		c.Add(Bulk, "a")
		for !slices.Contains(c.reconcile(), "a") {
			time.Sleep(100 * time.Millisecond)
			c.Add(Revocation, "x")
		}
		if took := time.Since(began); took < pauseReserve || took > 2*pauseReserve+pauseAfterRequest {
			t.Errorf("they paused for %s", took)
		}
	})
}

// TestManyBackgroundRequests checks that each is passed once and in order, and not at all if the name was requested with a higher priority meanwhile.
func TestManyBackgroundRequests(t *testing.T) {
	background(t, func(t *testing.T, c controlled) {
		all := names(50)
		c.Add(Bulk, all...)
		c.Add(Bulk, all...)
		c.Add(StatusUpdate, all[7], "new")
		c.Add(Observed, all[9])
		want := slices.Concat([]string{all[9], all[0], all[7], "new"}, all[1:7], all[8:9], all[10:])
		c.expect(t, "at the end", want...)
		if n := len(c.passed); n != 0 {
			t.Errorf("%d requests count as not reconciled", n)
		}
	})
}

// TestRecentNames checks for how long a name is recent.
func TestRecentNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recentNames
		r.add("a")
		time.Sleep(recentAge - 1)
		if r.add("b"); !r.has("a") || !r.has("b") || r.has("c") {
			t.Error("at the end of the time, it is not known which names are recent")
		}
		time.Sleep(recentAge)
		if !r.has("b") {
			t.Error("a name is not recent after less than the time")
		}
		time.Sleep(recentAge)
		if r.has("a") || r.has("b") {
			t.Error("a name is recent after more than twice the time")
		}
	})
}
