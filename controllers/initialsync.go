package controllers

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/federation"
)

// initialSyncTimeout bounds how long startup waits for members that neither answer nor fail, because a revocation must
// not wait for them.
const initialSyncTimeout = 10 * time.Second

// initialSyncPoll is the interval between two checks of the members.
const initialSyncPoll = 20 * time.Millisecond

// observed is a set of members from which something is read.
type observed interface {
	Registry() (bool, error)
	Clusters() []federation.Cluster
	Observe(cluster, object string) federation.Observation
}

// waitForInitialSync calls ready and then blocks until every member, including the configuration of its dataplane, was
// read or found unreadable. Otherwise each status would be written twice at startup, once for members that were not
// contacted yet, and HTTP rules would be removed from members that can enforce them.
func waitForInitialSync(ready func(context.Context) error, inspected func() bool, fleets ...observed) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, initialSyncTimeout)
		defer cancel()
		look := time.NewTicker(initialSyncPoll)
		defer look.Stop()
		for !inspected() || slices.ContainsFunc(fleets, unobserved) {
			select {
			case <-look.C:
			case <-ctx.Done():
				return nil // when everything ends, the controllers end, too
			}
		}
		return nil
	}
}

// unobserved reports whether a member has neither been read nor found unreadable.
func unobserved(fleet observed) bool {
	if listed, err := fleet.Registry(); !listed {
		return err == nil
	}
	return slices.ContainsFunc(fleet.Clusters(), func(c federation.Cluster) bool { return fleet.Observe(c.Name, "").Unknown })
}
