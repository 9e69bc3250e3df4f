package approval

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Policies reads the host cluster for a Follower.
type Policies interface {
	// Cached returns a policy from the cache; false if the cache does not have it.
	Cached(name string) (*v1alpha1.AccessControlPolicy, bool)
	// Live reads a policy from the API server; nil without an error if it does not exist.
	Live(ctx context.Context, name string) (*v1alpha1.AccessControlPolicy, error)
	// Seen returns the state of an object that a change is about. It reads from the API server if the cache may be behind.
	Seen(ctx context.Context, kind, name string) (ObjectSeen, error)
	// Ready reports whether the cache has been filled.
	Ready() bool
}

// Follower updates tickets from the statuses that the adapter reports. It keeps no state that cannot be read again, so
// missed notifications do no harm, and it begins by comparing every open ticket with its policy.
type Follower struct {
	Service  *Service
	Policies Policies
	Changed  <-chan string // names of policies that changed, and of other objects with their kind, as Ticket.JobKey has them
	Resync   time.Duration // interval of the full comparison, which finds missed changes
	Log      *slog.Logger

	requested chan string
}

// NewFollower returns a Follower of the policies and objects whose changes arrive on a channel.
func NewFollower(s *Service, p Policies, changed <-chan string, resync time.Duration, log *slog.Logger) *Follower {
	return &Follower{Service: s, Policies: p, Changed: changed, Resync: resync, Log: log, requested: make(chan string, 256)}
}

// Enqueue queues a comparison of the tickets of one policy. A worker calls it after a write, because the adapter may have
// reported the write before the ticket recorded it.
func (f *Follower) Enqueue(policy string) {
	select {
	case f.requested <- policy:
	default: // the queue is full; the resync compares the policy
	}
}

// expireEvery is the interval of the check for expiries. The statement itself ends in time.
const expireEvery = time.Second

// Run follows changes until the context ends.
func (f *Follower) Run(ctx context.Context) {
	expiry, pace := time.NewTicker(expireEvery), time.NewTicker(syncPace)
	defer expiry.Stop()
	defer pace.Stop()
	var synced time.Time
	var under *comparison // nil if no full comparison is under way
	for {
		next := pace.C
		if under == nil {
			next = nil
		}
		var err error
		select {
		case <-ctx.Done():
			return
		case name := <-f.Changed:
			err = f.follow(ctx, name)
		case name := <-f.requested:
			err = f.follow(ctx, name)
		case <-expiry.C:
			err = f.Service.Tick(ctx)
			if now := f.Service.Now(); err == nil && under == nil && f.Policies.Ready() && now.Sub(synced) >= f.Resync {
				synced, under = now, everything()
			}
		case <-next:
			var done bool
			if done, err = f.comparePage(ctx, under); done || err != nil {
				under = nil
			}
		}
		if err != nil && ctx.Err() == nil {
			f.Log.Error("tickets could not be compared with their policies; retrying", "error", err)
		}
	}
}

var followed = []State{StateApplying, StateEffective, StateFailed, StateRevoking}

// Sync compares every ticket that is under way or in force with its policy.
func (f *Follower) Sync(ctx context.Context) error {
	if !f.Policies.Ready() {
		return nil
	}
	for all := everything(); ; {
		if done, err := f.comparePage(ctx, all); done || err != nil {
			return err
		}
	}
}

const (
	// syncAtOnce is the number of tickets of a page, which are in memory at the same time. The pages are small, because people wait while
	// one is read: the portal compares all tickets in force twice a minute.
	syncAtOnce = 50
	// syncPace is the interval of the pages, between which notifications are handled.
	syncPace = 30 * time.Millisecond
)

// comparison is the state of a full comparison: the page of tickets that is compared next.
type comparison struct{ page Filter }

func everything() *comparison {
	return &comparison{Filter{ItemStates: followed, Limit: syncAtOnce, OmitComments: true}}
}

// comparePage compares the next page of a full comparison. Objects that it reads from the API server are not kept for
// the next page, because they may be outdated by then.
func (f *Follower) comparePage(ctx context.Context, s *comparison) (done bool, err error) {
	tickets, err := f.Service.Store.List(ctx, s.page)
	if err != nil {
		return false, err
	}
	if err := f.compare(ctx, tickets, "", map[string]*v1alpha1.AccessControlPolicy{}); err != nil {
		return false, err
	}
	if len(tickets) < syncAtOnce {
		return true, nil
	}
	s.page.After.Number = tickets[len(tickets)-1].Number
	return false, nil
}

// follow compares the tickets of one policy with it.
func (f *Follower) follow(ctx context.Context, policy string) error {
	tickets, err := f.Service.Store.List(ctx, Filter{Policy: policy, ItemStates: followed, OmitComments: true})
	if err != nil {
		return err
	}
	if err := f.compare(ctx, tickets, policy, map[string]*v1alpha1.AccessControlPolicy{}); err != nil {
		return err
	}
	return f.findRestored(ctx, policy, tickets)
}

// compare compares items with their policies; with the name of a policy, only the items of this policy. live caches what was read from the
// API server.
func (f *Follower) compare(ctx context.Context, tickets []*Ticket, policy string, live map[string]*v1alpha1.AccessControlPolicy) error {
	for _, t := range tickets {
		for i := range t.Items {
			if policy != "" && t.Items[i].Policy != policy {
				continue
			}
			if err := f.item(ctx, t, i, live, policy == ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// item compares an item with its policy or object. In a full comparison it also reads policies that are older than the item's last write,
// which shortly after a write is only the cache.
func (f *Follower) item(ctx context.Context, t *Ticket, i int, live map[string]*v1alpha1.AccessControlPolicy, full bool) (err error) {
	it := t.Items[i]
	if it.Change != nil && (it.State == StateApplying || it.State == StateFailed) && it.WrittenGeneration > 0 {
		return f.object(ctx, t, i)
	}
	if !t.Kind.Access() || it.Policy == "" {
		return nil
	}
	p, ok := f.Policies.Cached(it.Policy)
	read := !ok || it.tampered(p) || full && it.before(p)
	if read {
		// The cache may be behind: only the API server shows reliably that something is gone or different.
		if p, ok = live[it.Policy]; !ok {
			if p, err = f.Policies.Live(ctx, it.Policy); err != nil {
				return err
			}
			live[it.Policy] = p
		}
	}
	if p, err = f.withAllMembers(ctx, it, p); err != nil {
		return err
	}
	return f.applyIfChanged(ctx, t, i, p, read)
}

// withAllMembers returns the policy with all members of the item's unit. If its status has no room for them, they are read from the
// ProtectedResource, provided that it reports the same revision and the same counts; otherwise only the counts are known.
func (f *Follower) withAllMembers(ctx context.Context, it Item, p *v1alpha1.AccessControlPolicy) (*v1alpha1.AccessControlPolicy, error) {
	u, ok := Unit(p, it.ResourceName)
	kind, name, named := strings.Cut(u.Details, "/")
	if !ok || u.Unlisted() == 0 || !named || kind != ObjectProtectedResource {
		return p, nil
	}
	seen, err := f.Policies.Seen(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	if seen.Revision != u.Revision || v1alpha1.CountMembers(seen.Clusters) != u.Counts() {
		return p, nil
	}
	p = p.DeepCopy()
	for i := range p.Status.Units {
		if x := &p.Status.Units[i]; x.Resource == u.Resource {
			x.Clusters, x.Groups = seen.Clusters, nil
		}
	}
	return p, nil
}

func (f *Follower) object(ctx context.Context, t *Ticket, i int) error {
	c := t.Items[i].Change
	seen, err := f.Policies.Seen(ctx, c.Kind, c.Name)
	if err != nil {
		return err
	}
	move := func(t *Ticket) error {
		t.ObjectProgress(i, seen, f.Service.Now())
		return nil
	}
	probe := t.Clone()
	if err := move(probe); err != nil || !probe.Dirty() {
		return err
	}
	_, err = f.Service.Apply(ctx, t.Number, move)
	return err
}

// findRestored finds statements of items that have ended: a revoked grant must not be restored outside of the portal unnoticed.
func (f *Follower) findRestored(ctx context.Context, policy string, known []*Ticket) error {
	p, ok := f.Policies.Cached(policy)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for _, t := range known {
		for _, it := range t.Items {
			if it.Policy == policy && slices.Contains(followed, it.State) {
				seen[it.SID] = true
			}
		}
	}
	for i := range p.Spec.Statements {
		sid := p.Spec.Statements[i].SID
		n, ok := TicketOfSID(sid)
		if !ok || seen[sid] {
			continue
		}
		seen[sid] = true
		if err := f.stray(ctx, n, sid, p); err != nil {
			return err
		}
	}
	return nil
}

func (f *Follower) stray(ctx context.Context, number int64, sid string, p *v1alpha1.AccessControlPolicy) error {
	t, err := f.Service.Store.Get(ctx, number)
	if CodeOf(err) == CodeNotFound {
		return nil // a statement that the portal did not write, with a similar sid
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(t.Items, func(it Item) bool { return it.SID == sid })
	if i < 0 || t.Items[i].Policy != p.Name || !Returned(t.Items[i], p) && !t.Items[i].before(p) {
		return nil
	}
	live, err := f.Policies.Live(ctx, p.Name)
	if err != nil {
		return err
	}
	return f.applyIfChanged(ctx, t, i, live, true)
}

// tampered reports whether a policy differs from what the item recorded about it.
func (it Item) tampered(p *v1alpha1.AccessControlPolicy) bool {
	return Vanished(it, p) || Altered(it, p) || Returned(it, p)
}

// applyIfChanged applies the transition to a copy first, because most notifications change nothing and writes are expensive. read reports
// whether the policy was read from the API server after the ticket, and not from the cache.
func (f *Follower) applyIfChanged(ctx context.Context, seen *Ticket, i int, p *v1alpha1.AccessControlPolicy, read bool) error {
	move := func(t *Ticket) error {
		now, it, was := f.Service.Now(), t.Items[i], seen.Items[i]
		switch {
		case it.WrittenGeneration != was.WrittenGeneration || it.RevokeGeneration != was.RevokeGeneration || it.State != was.State:
			return nil // the item changed since it was compared
		case read && it.before(p):
			t.hostRestored(i, p, now)
		case Vanished(it, p):
			t.Fail(i, message.TicketStatementVanished(), now)
		case Altered(it, p):
			t.Fail(i, message.TicketStatementAltered(), now)
		case Returned(it, p):
			t.Remove(i, now)
		case p == nil:
			t.policyGone(i, now)
		default:
			t.Progress(i, p, now)
		}
		return nil
	}
	probe := seen.Clone()
	if err := move(probe); err != nil || !probe.Dirty() {
		return err
	}
	if seen.Items[i].tampered(p) || read && seen.Items[i].before(p) {
		f.Log.Warn(
			"a ticket's statement was changed outside the portal",
			"ticket",
			seen.ID(),
			"policy",
			seen.Items[i].Policy,
			"message",
			probe.Items[i].Message.Text,
		)
	}
	_, err := f.Service.Apply(ctx, seen.Number, move)
	return err
}

// policyGone requests the removal again if the policy that recorded it was deleted, because only the status of a policy
// shows that no member has the statement.
func (t *Ticket) policyGone(i int, now time.Time) {
	it := &t.Items[i]
	if it.State != StateRevoking || it.RevokeGeneration == 0 {
		return
	}
	it.RevokeGeneration = 0
	t.touch(now)
	t.setMessage(i, now, message.TicketPolicyDeleted())
	t.enqueue(JobRemove, i)
}
