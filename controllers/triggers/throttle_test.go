package triggers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
		throttle.call(do)
		expect(1, "a call after a long time")
		for range 50 {
			throttle.call(do)
		}
		expect(1, "50 calls after it ran")
		time.Sleep(899 * time.Millisecond)
		expect(1, "just before a second has passed since it began")
		time.Sleep(2 * time.Millisecond)
		expect(2, "when a second has passed")
		throttle.call(do) // while it runs
		time.Sleep(998 * time.Millisecond)
		expect(2, "a call while it ran")
		time.Sleep(2 * time.Millisecond)
		expect(3, "a second after that run began")
		time.Sleep(time.Minute)
		expect(3, "without further calls")
		throttle.call(do)
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
				throttle.call(do)
			}
			time.Sleep(time.Millisecond)
		}
		throttle.call(do)
		time.Sleep(time.Second)
		synctest.Wait()
		if runs.Load() != 3 {
			t.Errorf("the function ran %d times, want 3", runs.Load())
		}
	})
}
