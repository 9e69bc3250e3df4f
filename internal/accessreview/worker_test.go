package accessreview_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
)

// TestUnreadableFlows checks that a campaign waits for the flow store for a while, and opens without evidence then.
func TestUnreadableFlows(t *testing.T) {
	w := newWorld(t)
	w.failing = errors.New("away")
	n := w.grant("alice", "cart", "stock", 0)
	c, err := w.Create(t.Context(), sam, w.input())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the error is reported")
	}
	if c = w.campaign(c.ID); c.State != accessreview.StatePreparing || !c.Unreadable {
		t.Errorf("%+v", c)
	}
	w.now = w.now.Add(time.Hour)
	w.work()
	if l := w.line(c.ID, n); l.Recommendation != accessreview.None || !l.Evidence.At.IsZero() {
		t.Errorf("%+v", l)
	}
}

// TestHostUnknown checks that a campaign does not collect lines while the classes of the host cluster are not known, because a
// scope by class would select nothing then.
func TestHostUnknown(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	in := w.input()
	in.Scope.Classes = []string{"redis"}
	c, err := w.Create(t.Context(), sam, in)
	if err != nil {
		t.Fatal(err)
	}
	w.hostUnknown = true
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the error is reported")
	}
	if c = w.campaign(c.ID); c.State != accessreview.StatePreparing {
		t.Errorf("the campaign is %s", c.State)
	}
	w.hostUnknown = false
	w.work()
	if c = w.campaign(c.ID); c.State != accessreview.StateOpen {
		t.Errorf("the campaign is %s", c.State)
	}
}

// TestLateOpening checks that reviewers have the time that they were promised, although the flows could not be read for a
// while: nothing is decided by silence before anybody could decide it.
func TestLateOpening(t *testing.T) {
	w := newWorld(t)
	w.failing = errors.New("away")
	n := w.grant("alice", "cart", "stock", 0)
	in := w.input()
	in.Deadline = w.now.Add(accessreview.MinLength)
	c, err := w.Create(t.Context(), sam, in)
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(50 * time.Hour) // the portal was down
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the flows are unreadable for the first time, and the campaign opens")
	}
	w.now = w.now.Add(time.Hour)
	w.work()
	w.work()
	if c = w.campaign(c.ID); c.State != accessreview.StateOpen || !c.Deadline.Equal(w.now.Add(accessreview.MinLength)) {
		t.Errorf("the campaign is %s until %s", c.State, c.Deadline)
	}
	if err := w.decide(dan, c.ID, n, accessreview.Keep); err != nil {
		t.Error(err)
	}
	for _, e := range w.entries(c.ID) {
		if e.Action == "review.opened" && e.Details["deadline"] != c.Deadline.Format(time.RFC3339) {
			t.Errorf("the ledger does not contain the new deadline: %+v", e)
		}
	}
}

// TestAppliedOnce checks that a decision that was applied before a crash is not applied to an extension that was approved
// after it.
func TestAppliedOnce(t *testing.T) {
	w := newWorld(t)
	n := w.grant("alice", "cart", "stock", 240*time.Hour)
	c := w.open(w.input())
	if err := w.decide(dan, c.ID, n, accessreview.Shorten); err != nil {
		t.Fatal(err)
	}
	w.worker.SetStep(func(point string) {
		if point == "executed" {
			panic(errCrash)
		}
	})
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, errCrash) {
				t.Fatal("no crash")
			}
		}()
		w.work()
	}()
	again := w.grant("alice", "cart", "stock", 480*time.Hour, n)
	want := w.ticket(again).Items[0].End()
	w.now = w.now.Add(2 * time.Minute)
	if err := w.another("two").Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := w.line(c.ID, n); l.Outcome != accessreview.OutcomeShortened || !w.ticket(again).Items[0].End().Equal(want) {
		t.Errorf("the line is %s %s, and the extension ends %s, want %s", l.State, l.Outcome, w.ticket(again).Items[0].End(), want)
	}
}

// TestCrashAnywhere kills the worker at each point, lets another replica go on after the lease, and expects one outcome for
// every line and one revocation of every grant.
func TestCrashAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		numbers := []int64{w.grant("alice", "cart", "orders", 0), w.grant("alice", "cart", "stock", 0)}
		in := w.input()
		in.Silence = accessreview.SilenceRevoke
		c, err := w.Create(t.Context(), sam, in)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		w.worker.SetStep(func(string) {
			if calls++; calls == at {
				panic(errCrash)
			}
		})
		run := func(x *accessreview.Worker) (crashed bool) {
			defer func() {
				if v := recover(); v != nil {
					if err, ok := v.(error); !ok || !errors.Is(err, errCrash) {
						panic(v)
					}
					crashed = true
				}
			}()
			if err := x.Once(t.Context()); err != nil {
				t.Fatal(at, err)
			}
			return false
		}
		crashed := run(w.worker)
		w.now = w.now.Add(73 * time.Hour)
		if !crashed {
			crashed = run(w.worker)
		}
		if !crashed {
			if at < 9 {
				t.Fatalf("only %d points were tried", at-1)
			}
			return
		}
		w.now = w.now.Add(2 * time.Minute)
		second := w.another("two")
		run(second)
		if got := w.campaign(c.ID).Deadline; got.After(w.now) { // it opened late
			w.now = got
		}
		run(second)
		if got := w.campaign(c.ID); got.State != accessreview.StateClosed {
			t.Errorf("crash %d: the campaign is %s", at, got.State)
		}
		for _, n := range numbers {
			requested := 0
			for _, e := range w.ticket(n).Events {
				if e.Kind == approval.EventRevokeRequested {
					requested++
				}
			}
			if l := w.line(c.ID, n); l.Outcome != accessreview.OutcomeRevoked || requested != 1 {
				t.Errorf("crash %d: the line is %s %s, revoked %d times", at, l.State, l.Outcome, requested)
			}
		}
	}
}

// TestOneReplicaWorks checks that a replica does nothing while another one has the lease.
func TestOneReplicaWorks(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	w.work()
	c, err := w.Create(t.Context(), sam, w.input())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.another("two").Once(t.Context()); err == nil {
		t.Error("the second replica works")
	}
	if got := w.campaign(c.ID).State; got != accessreview.StatePreparing {
		t.Errorf("the campaign is %s", got)
	}
}

// crashAt lets the worker crash at a point.
func (w *world) crashAt(at string) {
	w.t.Helper()
	w.worker.SetStep(func(point string) {
		if point == at {
			panic(errCrash)
		}
	})
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errCrash) {
			w.t.Fatal("no crash")
		}
	}()
	w.work()
}

// TestLaterExtensionIsNotReviewed checks that a decision whose application was interrupted before it changed anything is not
// applied to an extension that was approved meanwhile, and that the ledger names the extension.
func TestLaterExtensionIsNotReviewed(t *testing.T) {
	w := newWorld(t)
	n := w.grant("alice", "cart", "stock", 240*time.Hour)
	c := w.open(w.input())
	if err := w.decide(dan, c.ID, n, accessreview.Revoke); err != nil {
		t.Fatal(err)
	}
	w.crashAt("applying")
	later := w.grant("alice", "cart", "stock", 480*time.Hour, n)
	w.now = w.now.Add(2 * time.Minute)
	if err := w.another("two").Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.ticket(n).State(); got != approval.StateRevoking {
		t.Errorf("the grant that was shown is %s", got)
	}
	if got := w.ticket(later).State(); got != approval.StateApproved {
		t.Errorf("the extension that was not shown is %s", got)
	}
	last := w.entries(c.ID)
	if e := last[len(last)-1]; e.Action != "review.outcome" || e.Details["notReviewed"] != approval.SID(later, 0) {
		t.Errorf("the ledger says %+v", e)
	}
}

// TestNothingChanged checks that an access that was revoked between the comparison and the application of a decision has not
// been revoked by the review.
func TestNothingChanged(t *testing.T) {
	for _, d := range []accessreview.Decision{accessreview.Revoke, accessreview.Shorten} {
		w := newWorld(t)
		n := w.grant("alice", "cart", "stock", 240*time.Hour)
		c := w.open(w.input())
		if err := w.decide(dan, c.ID, n, d); err != nil {
			t.Fatal(err)
		}
		w.crashAt("applying")
		w.revoke(n)
		w.now = w.now.Add(2 * time.Minute)
		if err := w.another("two").Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l := w.line(c.ID, n); l.Outcome != accessreview.OutcomeEnded {
			t.Errorf("%s: the outcome is %s", d, l.Outcome)
		}
	}
}

// renewals counts the renewals of the lease.
type renewals struct {
	accessreview.Store
	renewed chan struct{}
}

func (s renewals) Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error) {
	leads, err := s.Store.Lead(ctx, holder, now, ttl)
	select {
	case s.renewed <- struct{}{}:
	default:
	}
	return leads, err
}

// TestLeaseIsRenewed checks that a query of the flow store that takes longer than the lease does not let another replica
// begin.
func TestLeaseIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	if _, err := w.Create(t.Context(), sam, w.input()); err != nil {
		t.Fatal(err)
	}
	clock, store := clocktesting.NewFakePassiveClock(w.now), renewals{w.store, make(chan struct{})}
	w.Now, w.Store = clock.Now, store
	w.worker.SetRenewEvery(time.Millisecond)
	second, read := w.another("two"), 0
	w.reading = func(context.Context) {
		read++
		for range 3 {
			clock.SetTime(clock.Now().Add(40 * time.Second))
			for range 2 { // the first renewal may have read the clock before
				<-store.renewed
			}
			if leads, err := w.store.Lead(t.Context(), "two", clock.Now(), time.Minute); leads || err != nil {
				t.Errorf("another replica begins: %v", err)
			}
		}
	}
	w.work()
	if read != 1 {
		t.Errorf("the flows were read %d times", read)
	}
	w.reading = nil
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	if err := second.Once(t.Context()); err != nil {
		t.Errorf("after the lease: %v", err)
	}
}

// TestLostLeaseEndsThePass checks that a replica stops when another one has acquired its lease.
func TestLostLeaseEndsThePass(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	c, err := w.Create(t.Context(), sam, w.input())
	if err != nil {
		t.Fatal(err)
	}
	w.worker.SetRenewEvery(time.Millisecond)
	w.reading = func(ctx context.Context) {
		if leads, err := w.store.Lead(t.Context(), "two", w.now.Add(time.Minute), time.Minute); !leads || err != nil {
			t.Errorf("another replica after the lease: %t, %v", leads, err)
		}
		<-ctx.Done()
	}
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the pass ended without an error")
	}
	if got := w.campaign(c.ID).State; got != accessreview.StatePreparing {
		t.Errorf("the campaign is %s", got)
	}
}

// TestTooLargeToBegin checks that a campaign that outgrew the bounds before its lines were collected ends with the reason.
func TestTooLargeToBegin(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	c, err := w.Create(t.Context(), sam, w.input())
	if err != nil {
		t.Fatal(err)
	}
	w.grant("alice", "cart", "orders", 0)
	w.SetBounds(1, 100)
	w.work()
	if c = w.campaign(c.ID); c.State != accessreview.StateClosed || c.EndMessage.Code != "review.too-large" || c.EndedAt.IsZero() {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff(map[string]int64{"sam": 0}, w.notified("review-abandoned")); diff != "" {
		t.Errorf("notified: %s", diff)
	}
}

// TestOpenReviewsComeFirst checks that a deadline does not wait for the lines of a newer campaign.
func TestOpenReviewsComeFirst(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	first := w.open(w.input())
	in := w.input()
	in.Deadline = w.now.Add(240 * time.Hour)
	if _, err := w.Create(t.Context(), sam, in); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(73 * time.Hour)
	w.reading = func(context.Context) {
		if got := w.campaign(first.ID).State; got != accessreview.StateClosed {
			t.Errorf("while the lines of another campaign are collected, the first one is %s", got)
		}
	}
	w.work()
}
