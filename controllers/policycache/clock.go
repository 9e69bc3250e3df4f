package policycache

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// longest is how long the clock sleeps at most. It bounds how late a change of the wall clock itself is noticed.
const longest = time.Minute

// Clock wakes the units that change by themselves, when they do. Missed instants (a suspended machine) are made up for.
type Clock struct {
	Index *Cache
	Time  clock.WithTicker
	// Ready waits until the index is complete.
	Ready func(context.Context) error
}

// Start runs until the context ends; it looks for the next instant again whenever an object changes.
func (c *Clock) Start(ctx context.Context) error {
	// Before the index is complete, because units are decided from then on: an instant between their decision and a later
	// first look would be nobody's, and an expired grant would stay open.
	seen := c.Time.Now()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	c.Index.Overdue(seen)
	for {
		sleep := longest
		if next, ok := c.Index.View().NextChange(seen); ok {
			sleep = min(longest, max(0, next.Sub(c.Time.Now())))
		}
		timer := c.Time.NewTimer(sleep)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-c.Index.changes:
			timer.Stop()
		case <-timer.C():
		}
		now := c.Time.Now()
		c.Index.Turn(seen, now)
		seen = now
	}
}
