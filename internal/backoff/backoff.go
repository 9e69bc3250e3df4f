// Package backoff computes retry delays for work whose number of attempts is stored, and therefore survives a restart.
// Loops that retry in memory use k8s.io/apimachinery's wait.Backoff directly.
package backoff

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Delay returns the delay after a number of failed attempts: first after one, twice as long after each further one, at
// most most.
func Delay(attempts int, first, most time.Duration) time.Duration {
	b := wait.Backoff{Duration: first, Factor: 2, Steps: max(attempts, 1), Cap: most}
	delay := b.Step()
	for delay < most && b.Steps > 0 {
		delay = b.Step()
	}
	return min(delay, most)
}
