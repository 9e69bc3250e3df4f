package faults

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// askEvery is the rhythm of the continuous probe.
	askEvery = 100 * time.Millisecond
	// horizon is how soon what ends or begins may do so, also for a program whose clock is ahead.
	horizon = 10*time.Minute + clockOff
)

// watchdog tries all connections to one member all the time. One may pass only when it may in some world that was wanted
// since the member last was as wanted, and has to pass when it has to in all of them: whatever happens in between, no change
// opens what is closed before and after it, or closes what is open.
type watchdog struct {
	member   string
	witness  *witness
	attempts []attempt

	violated func(text string)

	mu        sync.Mutex
	may, must []bool
	// asked counts the connections that were tried.
	asked int
}

func newWatchdog(member string, w *witness, attempts []attempt, violated func(string)) *watchdog {
	return &watchdog{member: member, witness: w, attempts: attempts, violated: violated}
}

// expect is what is right for as long as the world stays as it is.
func (w *watchdog) expect(m meaning, now time.Time) {
	may, must := w.rights(m, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.may, w.must = may, must
}

// expectAlso adds a world that is wanted from now on.
func (w *watchdog) expectAlso(m meaning, now time.Time) {
	may, must := w.rights(m, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range may {
		may[i] = may[i] || w.may[i]
		must[i] = must[i] && w.must[i]
	}
	w.may, w.must = may, must
}

// release lets some connections be lost until the member is as wanted again. An address that passes from one subject to
// another stays in the one's group until it is in force in the other's, but not for long: in an outage it may be nobody's in
// between, and refused.
func (w *watchdog) release(of func(attempt) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	must := make([]bool, len(w.must))
	for i, a := range w.attempts {
		must[i] = w.must[i] && !of(a)
	}
	w.must = must
}

// forgive expects nothing of some connections until the member is as wanted again.
func (w *watchdog) forgive(of func(attempt) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	may, must := make([]bool, len(w.may)), make([]bool, len(w.must))
	for i, a := range w.attempts {
		hit := of(a)
		may[i], must[i] = w.may[i] || hit, w.must[i] && !hit
	}
	w.may, w.must = may, must
}

// rights of a world, also at the instants that come soon.
func (w *watchdog) rights(m meaning, now time.Time) (may, must []bool) {
	may, must = make([]bool, len(w.attempts)), make([]bool, len(w.attempts))
	instants := m.instants(now, horizon)
	for i, a := range w.attempts {
		must[i] = true
		for _, at := range instants {
			pass := m.passes(w.member, a, at)
			may[i], must[i] = may[i] || pass, must[i] && pass
		}
	}
	return may, must
}

func (w *watchdog) run(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !w.look() || ctx.Err() != nil {
			return
		}
	}
}

// look tries every connection once; false: nobody answers.
func (w *watchdog) look() bool {
	w.mu.Lock()
	may, must := w.may, w.must
	w.mu.Unlock()
	outcomes, err := w.witness.ask()
	if err != nil {
		w.violated(fmt.Sprintf("%s cannot be probed: %s", w.member, err))
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked += len(outcomes)
	for i, outcome := range outcomes {
		pass := passes(outcome)
		// What was right when it was asked, or is when it was answered, is right.
		switch {
		case pass && !may[i] && !w.may[i]:
			w.violated(fmt.Sprintf("in %s %s passes (%s), which nothing allowed", w.member, w.attempts[i], outcome))
		case !pass && must[i] && w.must[i]:
			w.violated(fmt.Sprintf("in %s %s is lost (%s), which everything allowed", w.member, w.attempts[i], outcome))
		}
	}
	return true
}
