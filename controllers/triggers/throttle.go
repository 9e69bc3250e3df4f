package triggers

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// throttleFactor is the inverse of the share of the time that a throttled function may take.
const throttleFactor = 10

// throttle calls a function that handles everything at once and takes longer the more there is. A call runs it immediately if it ran
// long enough ago, and otherwise as soon as it would take a tenth of the time. Calls until then are combined. The function always runs
// once more after the last call. The zero value is usable.
type throttle struct {
	mu sync.Mutex
	// busy reports whether the function runs or will run, and again whether it was called while it ran.
	busy, again bool
	running     bool
	next        time.Time
}

// call runs do now or later, as described above, by the clock pauses. It may be called by do.
func (t *throttle) call(pauses clock.WithTicker, do func()) {
	t.mu.Lock()
	if t.busy {
		t.again = t.again || t.running
		t.mu.Unlock()
		return
	}
	t.busy = true
	wait := t.next.Sub(pauses.Now())
	t.mu.Unlock()
	if wait > 0 {
		t.runAfter(pauses, wait, do)
		return
	}
	t.run(pauses, do)
}

func (t *throttle) runAfter(pauses clock.WithTicker, wait time.Duration, do func()) {
	if wait <= 0 { // a timer of a clock that stands still would not fire
		go t.run(pauses, do)
		return
	}
	timer := pauses.NewTimer(wait)
	go func() {
		<-timer.C()
		t.run(pauses, do)
	}()
}

func (t *throttle) run(pauses clock.WithTicker, do func()) {
	t.mu.Lock()
	t.running = true
	t.mu.Unlock()
	began := pauses.Now()
	do()
	took := pauses.Since(began)
	t.mu.Lock()
	t.running, t.next = false, began.Add(throttleFactor*took)
	again := t.again
	t.again, t.busy = false, again
	wait := t.next.Sub(pauses.Now())
	t.mu.Unlock()
	if again {
		t.runAfter(pauses, wait, do)
	}
}
