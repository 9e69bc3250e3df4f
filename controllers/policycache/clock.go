package policycache

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// maxSleep is the maximum sleep of the clock. It bounds how late a change of the wall clock is detected.
const maxSleep = time.Minute

// Clock enqueues the units that change over time, at the time of the change. Missed instants (of a suspended machine)
// are caught up.
type Clock struct {
	Cache *Cache
	Time  clock.WithTicker
	// Ready waits until the cache is complete.
	Ready func(context.Context) error
}

// Start runs until the context ends. It computes the next instant again whenever an object changes.
func (c *Clock) Start(ctx context.Context) error {
	// The time is read before the cache is complete, because units are decided from then on: an instant between their
	// decision and a later first reading would be missed, and an expired grant would stay open.
	seen := c.Time.Now()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	c.Cache.EnqueueExpired(seen)
	for {
		sleep := maxSleep
		if next, ok := c.Cache.View().NextChange(seen); ok {
			sleep = min(maxSleep, max(0, next.Sub(c.Time.Now())))
		}
		timer := c.Time.NewTimer(sleep)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-c.Cache.changes:
			timer.Stop()
		case <-timer.C():
		}
		now := c.Time.Now()
		c.Cache.EnqueueChanges(seen, now)
		seen = now
	}
}
