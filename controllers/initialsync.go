package controllers

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/federation"
)

// acquaintance is how long a start waits for members that neither answer nor fail: a revocation must not wait for them.
const acquaintance = 10 * time.Second

// initialSyncPoll is how often it looks whether they did.
const initialSyncPoll = 20 * time.Millisecond

// observed are members of which something is read.
type observed interface {
	Registry() (bool, error)
	Clusters() []federation.Cluster
	Observe(cluster, object string) federation.Observation
}

// waitForInitialSync is ready and then waits until every member was read or found unreadable, and so was the configuration of its
// dataplane. Before that each status would tell of members that were not contacted yet, and once more of what they have: two
// writes for each resource, and none is news; and rules about requests would be taken away from members that can enforce them.
func waitForInitialSync(ready func(context.Context) error, inspected func() bool, fleets ...observed) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, acquaintance)
		defer cancel()
		look := time.NewTicker(initialSyncPoll)
		defer look.Stop()
		for !inspected() || slices.ContainsFunc(fleets, unobserved) {
			select {
			case <-look.C:
			case <-ctx.Done():
				return nil // if everything ends, the controllers see that themselves
			}
		}
		return nil
	}
}

// unobserved tells whether some member was not heard of yet.
func unobserved(fleet observed) bool {
	if listed, err := fleet.Registry(); !listed {
		return err == nil
	}
	return slices.ContainsFunc(fleet.Clusters(), func(c federation.Cluster) bool { return fleet.Observe(c.Name, "").Unknown })
}
