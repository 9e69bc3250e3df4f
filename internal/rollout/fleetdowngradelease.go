package rollout

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// FleetDowngradeLease is the lease of a run of a fleet downgrade, which is stored while the run goes on. Before each write, a run reads whether it
// still has its lease. The end of a downgrade (Resume) first stores its own lease, with which no downgrade begins, and marks those of the
// downgrades in its scope as stopped. It then waits until they are released, or have expired because the replica crashed, and only then reads
// from the API server what is open. A lease that was removed is never acquired again, so a replica that was suspended for longer than its lease
// opens nothing afterwards, whatever happened meanwhile.
type FleetDowngradeLease struct {
	ID     string `json:"id"`
	Scope  string `json:"scope"` // as in FleetDowngradeScope.String
	Resume bool   `json:"resume,omitempty"`
	// Until is when the lease expires by the clock of its replica. Others wait for approval.ClockTolerance more.
	Until time.Time `json:"until"`
	// Stopped reports whether the end of a downgrade stopped the run.
	Stopped bool `json:"stopped,omitempty"`
}

const (
	// fleetDowngradeKey is the key of the state that contains the leases. It is not the name of a resource, because those contain a colon.
	fleetDowngradeKey = "FleetDowngrade"
	// fleetDowngradeLease is the duration of a lease, which is renewed when half of it has passed. A write takes at most half of it.
	fleetDowngradeLease = 30 * time.Second
	// fleetDowngradePoll is the interval at which the end of a downgrade reads whether the downgrades that it stopped have ended.
	fleetDowngradePoll = 200 * time.Millisecond
)

// active reports whether the run of a lease may still write. A lease that ends later than the longest possible one came from a clock that was
// ahead, and counts as expired.
func (l FleetDowngradeLease) active(now time.Time) bool {
	left := l.Until.Sub(now)
	return left > -approval.ClockTolerance && left <= fleetDowngradeLease+approval.ClockTolerance
}

// leaseOf returns the lease of a run; nil if it has none any more.
func (x *State) leaseOf(r *fleetDowngradeRun) *FleetDowngradeLease {
	i := slices.IndexFunc(x.FleetDowngrades, func(l FleetDowngradeLease) bool { return l.ID == r.id })
	if i < 0 {
		return nil
	}
	return &x.FleetDowngrades[i]
}

// register stores the lease of a run, together with news, and reports whether it stopped other runs. Several downgrades may run at the same time,
// and so may several ends, because each leaves the same. A downgrade does not begin while an end runs, and an end not while a downgrade runs that
// is not in its scope.
func (d *FleetDowngrader) register(ctx context.Context, r *fleetDowngradeRun, n News) (stopped bool, err error) {
	_, err = d.Store.Change(ctx, fleetDowngradeKey, func(x *State) (News, error) {
		stopped = false // the transaction may run again
		now := d.Now()
		x.FleetDowngrades = slices.DeleteFunc(x.FleetDowngrades, func(l FleetDowngradeLease) bool { return !l.active(now) })
		for i := range x.FleetDowngrades {
			l := &x.FleetDowngrades[i]
			if l.Resume == r.Resume {
				continue
			}
			scope, ok := ParseFleetDowngradeScope(l.Scope)
			if !r.Resume || !ok || !r.Scope.covers(scope) {
				return News{}, fail(approval.CodeConflict, message.DowngradeUnderWay())
			}
			l.Stopped, stopped = true, true
		}
		own := FleetDowngradeLease{ID: r.id, Scope: r.Scope.String(), Resume: r.Resume, Until: now.Add(fleetDowngradeLease)}
		x.FleetDowngrades = append(x.FleetDowngrades, own)
		return n, nil
	})
	return stopped, err
}

// awaitOthers waits until no downgrade runs any more. If patience ends before, the caller has to try again; what was stopped stays stopped.
func (d *FleetDowngrader) awaitOthers(ctx, patience context.Context, r *fleetDowngradeRun) error {
	for {
		others, err := d.renew(ctx, r)
		if err != nil || !others {
			return err
		}
		select {
		case <-patience.Done():
			return fail(approval.CodeConflict, message.DowngradeUnderWay())
		case <-time.After(fleetDowngradePoll):
		}
	}
}

// hold returns an error unless a run may write, for at least half of a lease from now on.
func (d *FleetDowngrader) hold(ctx context.Context, r *fleetDowngradeRun) error {
	states, err := d.Store.States(ctx, fleetDowngradeKey)
	if err != nil {
		return leaseUnknown(err)
	}
	x := states[fleetDowngradeKey]
	l := x.leaseOf(r)
	if l == nil || l.Stopped {
		return fail(approval.CodeConflict, message.DowngradeUnderWay())
	}
	if left := l.Until.Sub(d.Now()); left >= fleetDowngradeLease/2 && left <= fleetDowngradeLease {
		return nil
	}
	_, err = d.renew(ctx, r)
	return err
}

// renew extends the lease of a run, and reports whether downgrades run besides it. A lease that has expired is extended as well while it is stored:
// nobody has relied on its end then.
func (d *FleetDowngrader) renew(ctx context.Context, r *fleetDowngradeRun) (others bool, err error) {
	lost := false
	_, err = d.Store.Change(ctx, fleetDowngradeKey, func(x *State) (News, error) {
		now := d.Now()
		l := x.leaseOf(r)
		if lost = l == nil || l.Stopped; lost {
			return News{}, fail(approval.CodeConflict, message.DowngradeUnderWay())
		}
		l.Until = now.Add(fleetDowngradeLease)
		x.FleetDowngrades = slices.DeleteFunc(x.FleetDowngrades, func(l FleetDowngradeLease) bool { return !l.active(now) })
		others = slices.ContainsFunc(x.FleetDowngrades, func(l FleetDowngradeLease) bool { return !l.Resume && l.ID != r.id })
		return News{}, nil
	})
	if err != nil && !lost {
		err = leaseUnknown(err)
	}
	return others, err
}

// release removes the lease of a run after its last write. If that fails, the lease expires by itself.
func (d *FleetDowngrader) release(ctx context.Context, r *fleetDowngradeRun) {
	_, err := d.Store.Change(context.WithoutCancel(ctx), fleetDowngradeKey, func(x *State) (News, error) {
		x.FleetDowngrades = slices.DeleteFunc(x.FleetDowngrades, func(l FleetDowngradeLease) bool { return l.ID == r.id })
		return News{}, nil
	})
	if err != nil {
		d.Log.Warn("the lease of a downgrade could not be released, and expires by itself", "error", err)
	}
}

// leaseUnknown returns the error of a run whose lease could not be read or renewed, so that it may not write.
func leaseUnknown(err error) error {
	return &approval.Error{Code: approval.CodeStoreUnavailable, Message: message.DatabaseUnavailable(), Err: err}
}
