// Package backoff computes retry delays for work whose number of attempts is stored, and therefore survives a restart.
// Loops that retry in memory use k8s.io/apimachinery's wait.Backoff directly. Pause waits until the next attempt of either.
package backoff

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// Pause waits for d of the clock, and returns false if the context ended before.
func Pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// Delay returns the delay after a number of failed attempts: first after one, twice as long after each further one, at
// most most.
func Delay(attempts int, first, most time.Duration) time.Duration {
	b := wait.Backoff{Duration: first, Factor: 2, Steps: math.MaxInt, Cap: most}
	delay := b.Step()
	for n := 1; n < attempts && delay < most; n++ {
		delay = b.Step()
	}
	return min(delay, most)
}
