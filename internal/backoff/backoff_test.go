package backoff

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestDelay(t *testing.T) {
	for attempts, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second,
		5: 10 * time.Second, 6: 10 * time.Second, math.MaxInt: 10 * time.Second,
	} {
		if got := Delay(attempts, time.Second, 10*time.Second); got != want {
			t.Errorf("delay after %d attempts is %s, want %s", attempts, got, want)
		}
	}
	if got := Delay(1, time.Minute, time.Second); got != time.Second {
		t.Errorf("a first delay above the longest one is %s, want 1s", got)
	}
}

// TestPause checks that a pause ends with its time, or with the context.
func TestPause(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	done := make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, ends := range []bool{true, false} {
		go func() { done <- Pause(ctx, c, time.Minute) }()
		for !c.HasWaiters() {
			runtime.Gosched()
		}
		if ends {
			c.Step(time.Minute)
		} else {
			cancel()
		}
		if got := <-done; got != ends {
			t.Errorf("got %t, want %t", got, ends)
		}
	}
}
