// Package startup orders the start of the controllers: what runs on every replica, and what a controller waits for before
// it reconciles for the first time.
package startup

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/federation"
)

const (
	// Timeout bounds how long the start waits for members that neither answer nor fail, because a revocation must not
	// wait for them.
	Timeout = 10 * time.Second
	// PollInterval is the interval between two checks of what the start waits for.
	PollInterval = 20 * time.Millisecond
)

// Ready blocks until a controller may begin, or returns an error.
type Ready func(context.Context) error

// EveryReplica is a runnable of every replica, so that a new leader has a current view of the fleet.
type EveryReplica func(context.Context) error

// Start runs the function until the context ends.
func (e EveryReplica) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection returns false.
func (EveryReplica) NeedLeaderElection() bool { return false }

// After returns a Ready that calls ready, and then waits until known is closed.
func After(ready Ready, known <-chan struct{}) Ready {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		select {
		case <-known:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Poll calls done at once and then every PollInterval of the clock pauses, until done returns true. It returns false if the context ended
// or timeout received a value before that; a nil timeout sets no limit.
func Poll(ctx context.Context, pauses clock.WithTicker, timeout <-chan time.Time, done func() bool) bool {
	ticker := pauses.NewTicker(PollInterval)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C():
		case <-timeout:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// WhenListed returns a runnable that calls run once the host's objects are listed.
func WhenListed(objects interface{ State() (bool, error) }, pauses clock.WithTicker, run func(context.Context) error) EveryReplica {
	return func(ctx context.Context) error {
		if !Poll(ctx, pauses, nil, func() bool { listed, _ := objects.State(); return listed }) {
			return nil
		}
		return run(ctx)
	}
}

// WhenKnown returns a runnable that calls run once the host's objects are listed, or cannot be. What is read in the members is compared with
// them.
func WhenKnown(objects interface{ State() (bool, error) }, pauses clock.WithTicker, run func(context.Context) error) EveryReplica {
	return func(ctx context.Context) error {
		known := func() bool {
			listed, err := objects.State()
			return listed || err != nil
		}
		if !Poll(ctx, pauses, nil, known) {
			return nil
		}
		return run(ctx)
	}
}

// WhenClosed returns a runnable that calls run once a channel is closed.
func WhenClosed(closed <-chan struct{}, run func(context.Context) error) EveryReplica {
	return func(ctx context.Context) error {
		select {
		case <-closed:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// Fleet is a set of members from which something is read.
type Fleet interface {
	Registry() (bool, error)
	Clusters() []federation.Cluster
	Observe(cluster, object string) federation.Observation
}

// AfterMembers returns a Ready that calls ready, and then waits until every member of the fleets was read or found
// unreadable, and checked returns true, for at most Timeout of the clock pauses. Otherwise each status would be written twice at the start,
// once for members that were not contacted yet, and HTTP rules would be removed from members that can enforce them.
func AfterMembers(ready Ready, pauses clock.WithTicker, checked func() bool, fleets ...Fleet) Ready {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		limit := pauses.NewTimer(Timeout)
		defer limit.Stop()
		Poll(ctx, pauses, limit.C(), func() bool { return checked() && !slices.ContainsFunc(fleets, unobserved) })
		return nil // when everything ends, the controllers end, too
	}
}

// unobserved reports whether a member has neither been read nor found unreadable.
func unobserved(fleet Fleet) bool {
	if listed, err := fleet.Registry(); !listed {
		return err == nil
	}
	return slices.ContainsFunc(fleet.Clusters(), func(c federation.Cluster) bool { return fleet.Observe(c.Name, "").Unknown })
}
