package memberapi

import (
	"context"
	"math/rand/v2"
	"time"
)

// Faults describes the faults that a member shows.
type Faults struct {
	// Latency delays each answer and each event of a watch.
	Latency time.Duration
	// Errors is the share of requests, from 0 to 1, that are answered with an internal error and change nothing.
	Errors float64
	// Silent makes the member accept requests and never answer, and its watches stop without an end.
	Silent bool
}

// faultState is a version of the faults of a member.
type faultState struct {
	Faults
	// ended is closed when other faults apply.
	ended chan struct{}
}

// SetFaults replaces the faults of the member. Requests that are not answered because it is silent continue when it no longer is.
func (m *Member) SetFaults(f Faults) {
	close(m.faults.Swap(&faultState{f, make(chan struct{})}).ended)
}

// wait delays an answer by the faults of the member. It returns false if the request ended meanwhile.
func (m *Member) wait(ctx context.Context) bool {
	for {
		f := m.faults.Load()
		if f.Silent {
			select {
			case <-f.ended:
				continue
			case <-ctx.Done():
				return false
			}
		}
		if f.Latency == 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(f.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// fails reports whether a request is answered with an error.
func (m *Member) fails() bool {
	share := m.faults.Load().Errors
	return share > 0 && rand.Float64() < share //nolint:gosec // the choice protects nothing
}
