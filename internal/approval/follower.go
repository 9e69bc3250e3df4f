package approval

import (
	"context"
	"log/slog"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Policies is the follower's view of the host cluster.
type Policies interface {
	// Cached policy; false: the cache does not have it, or not yet.
	Cached(name string) (*v1alpha1.AccessControlPolicy, bool)
	// Live reads from the API server; nil without an error: it does not exist.
	Live(ctx context.Context, name string) (*v1alpha1.AccessControlPolicy, error)
	// Ready tells whether the cache has seen everything once.
	Ready() bool
}

// Follower moves tickets by what the adapter reports. Everything it knows can be read again, so it may miss
// notifications, and starts by comparing every open ticket with its policy.
type Follower struct {
	Service  *Service
	Policies Policies
	Changed  <-chan string // names of policies that changed
	Resync   time.Duration // for what notifications missed
	Log      *slog.Logger

	look chan string
}

// NewFollower of policies whose changes a channel names.
func NewFollower(s *Service, p Policies, changed <-chan string, resync time.Duration, log *slog.Logger) *Follower {
	return &Follower{Service: s, Policies: p, Changed: changed, Resync: resync, Log: log, look: make(chan string, 256)}
}

// Look compares the tickets of one policy soon. A worker asks for it after a write, because the adapter may have
// reported on the write before the ticket knew of it.
func (f *Follower) Look(policy string) {
	select {
	case f.look <- policy:
	default: // far behind; the resync finds it
	}
}

// expireEvery is how late an expiry may be seen; the statement itself ends in time.
const expireEvery = time.Second

// Run until the context ends.
func (f *Follower) Run(ctx context.Context) {
	expiry := time.NewTicker(expireEvery)
	defer expiry.Stop()
	var synced time.Time
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case name := <-f.Changed:
			err = f.follow(ctx, Filter{Policy: name, States: followed})
		case name := <-f.look:
			err = f.follow(ctx, Filter{Policy: name, States: followed})
		case <-expiry.C:
			err = f.Service.Expire(ctx)
			if now := f.Service.Now(); err == nil && f.Policies.Ready() && now.Sub(synced) >= f.Resync {
				synced = now
				err = f.Sync(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			f.Log.Error("tickets could not be followed; it is tried again", "error", err)
		}
	}
}

var followed = []State{StateApplying, StateEffective, StateRevoking}

// Sync compares every ticket that is under way or in force with its policy.
func (f *Follower) Sync(ctx context.Context) error {
	if !f.Policies.Ready() {
		return nil
	}
	return f.follow(ctx, Filter{States: followed})
}

func (f *Follower) follow(ctx context.Context, filter Filter) error {
	tickets, err := f.Service.Store.List(ctx, filter)
	if err != nil {
		return err
	}
	live := map[string]*v1alpha1.AccessControlPolicy{}
	for _, t := range tickets {
		if t.Policy == "" {
			continue
		}
		p, ok := f.Policies.Cached(t.Policy)
		if !ok || Vanished(t, p) {
			// A cache may be behind; only the API server can say that something is gone.
			if p, ok = live[t.Policy]; !ok {
				if p, err = f.Policies.Live(ctx, t.Policy); err != nil {
					return err
				}
				live[t.Policy] = p
			}
		}
		if err := f.one(ctx, t, p); err != nil {
			return err
		}
	}
	return nil
}

// one tries the transition on a copy first, because most notifications change nothing and a write is dear.
func (f *Follower) one(ctx context.Context, seen *Ticket, p *v1alpha1.AccessControlPolicy) error {
	move := func(t *Ticket) error {
		now := f.Service.Now()
		switch {
		case t.WrittenGeneration != seen.WrittenGeneration || t.State != seen.State:
			return nil // it moved on since it was compared
		case Vanished(t, p):
			t.Fail(VanishedMessage, now)
		case p == nil:
			t.policyGone(now)
		default:
			t.Progress(p, now)
		}
		return nil
	}
	probe := seen.clone()
	if err := move(probe); err != nil || !probe.Dirty() {
		return err
	}
	_, err := f.Service.Apply(ctx, seen.Number, move)
	return err
}

// policyGone asks for the removal again when the policy that recorded it was deleted by hand: only a policy can tell
// that no member has the statement.
func (t *Ticket) policyGone(now time.Time) {
	if t.State != StateRevoking || t.RevokeGeneration == 0 {
		return
	}
	t.RevokeGeneration = 0
	t.touch(now)
	t.say(now, "The policy was deleted outside the portal; it is written again to see that no member has the statement.")
	t.enqueue(JobRemove)
}

func (t *Ticket) clone() *Ticket {
	c := *t
	c.Events = append([]Event(nil), t.Events...)
	c.jobs = append([]JobKind(nil), t.jobs...)
	return &c
}
