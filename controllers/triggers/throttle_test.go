package triggers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttle throttle
		var runs atomic.Int32
		do := func() {
			runs.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		expect := func(want int32, when string) {
			t.Helper()
			synctest.Wait()
			if got := runs.Load(); got != want {
				t.Fatalf("%s: the function ran %d times, want %d", when, got, want)
			}
		}
		throttle.call(clock.RealClock{}, do)
		expect(1, "a call after a long time")
		for range 50 {
			throttle.call(clock.RealClock{}, do)
		}
		expect(1, "50 calls after it ran")
		time.Sleep(899 * time.Millisecond)
		expect(1, "just before a second has passed since it began")
		time.Sleep(2 * time.Millisecond)
		expect(2, "when a second has passed")
		throttle.call(clock.RealClock{}, do) // while it runs
		time.Sleep(998 * time.Millisecond)
		expect(2, "a call while it ran")
		time.Sleep(2 * time.Millisecond)
		expect(3, "a second after that run began")
		time.Sleep(time.Minute)
		expect(3, "without further calls")
		throttle.call(clock.RealClock{}, do)
		expect(4, "a call after a long time")
		time.Sleep(time.Minute)
	})
}

func TestThrottleOfAFunctionThatCallsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttle throttle
		var runs atomic.Int32
		var do func()
		do = func() {
			if runs.Add(1) < 3 {
				throttle.call(clock.RealClock{}, do)
			}
			time.Sleep(time.Millisecond)
		}
		throttle.call(clock.RealClock{}, do)
		time.Sleep(time.Second)
		synctest.Wait()
		if runs.Load() != 3 {
			t.Errorf("the function ran %d times, want 3", runs.Load())
		}
	})
}

// TestThrottleUsesItsClock checks that a clock which stands still delays the function for as long as that.
func TestThrottleUsesItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttle throttle
		var runs atomic.Int32
		pauses := clocktesting.NewFakeClock(time.Now())
		do := func() {
			runs.Add(1)
			pauses.Step(100 * time.Millisecond)
		}
		throttle.call(pauses, do)
		throttle.call(pauses, do)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := runs.Load(); got != 1 {
			t.Fatalf("the function ran %d times while its clock stood still, want 1", got)
		}
		pauses.Step(899 * time.Millisecond)
		synctest.Wait()
		if got := runs.Load(); got != 1 {
			t.Fatalf("the function ran %d times before it was due, want 1", got)
		}
		pauses.Step(time.Millisecond)
		synctest.Wait()
		if got := runs.Load(); got != 2 {
			t.Errorf("the function ran %d times, want 2", got)
		}
	})
}
