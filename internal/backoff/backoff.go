// Package backoff computes retry delays for work whose number of attempts is stored, and therefore survives a restart.
// Loops that retry in memory use k8s.io/apimachinery's wait.Backoff directly.
package backoff

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

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
