package podlabels

import (
	"context"
	"runtime"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestRepeat checks that the triggers during a pause lead to one read after it, and that no pause follows a read that was not made.
func TestRepeat(t *testing.T) {
	pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	trigger, reads, answers := make(chan struct{}, 1), make(chan struct{}), make(chan time.Duration, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Repeat(ctx, trigger, pauses, func() time.Duration {
			reads <- struct{}{}
			return <-answers
		})
	}()
	requeue := func() {
		select {
		case trigger <- struct{}{}:
		default:
		}
	}
	next := func(what string, answer time.Duration) {
		t.Helper()
		select {
		case <-reads:
			answers <- answer
		case <-time.After(time.Minute):
			t.Fatalf("waited in vain for the read %s", what)
		}
	}
	pausing := func() {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !pauses.HasWaiters(); runtime.Gosched() {
			if time.Now().After(limit) {
				t.Fatal("there is no pause after the read")
			}
		}
	}
	requeue()
	next("before the list is there", 0)
	requeue()
	next("without a pause", MinReadInterval)
	pausing()
	requeue()
	requeue()
	pauses.Step(MinReadInterval - time.Millisecond)
	select {
	case <-reads:
		t.Fatal("a read during the pause")
	default:
	}
	pauses.Step(time.Millisecond)
	next("after the pause", MinReadInterval)
	pausing()
	pauses.Step(MinReadInterval)
	select {
	case <-reads:
		t.Error("a read without a trigger")
	default:
	}
	requeue()
	next("after a quiet time", MinReadInterval)
	pausing()
	stop()
	<-done
	if pauses.HasWaiters() {
		t.Error("a timer is left")
	}
}
