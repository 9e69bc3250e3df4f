package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// Broadcast is a channel to a receiver that is nobody's own.
type Broadcast struct {
	Channel Channel
	Kinds   []Kind // what is told there; none: everything
}

// RouterConfig of a Router; OnInbox may be missing.
type RouterConfig struct {
	Store      Store
	Ticket     func(ctx context.Context, number int64) (*approval.Ticket, error)
	Delegation func(ctx context.Context, id int64) (approval.Delegation, error)
	People     func(ctx context.Context) (People, error)
	Channels   []Channel // of people, beside the inbox
	Broadcasts []Broadcast
	OnInbox    func(person string) // something new is there
	Now        func() time.Time
	Log        *slog.Logger
	Poll       time.Duration
	Keep       time.Duration // of what was read, sent or given up
	// Gone tells that a ticket or delegation will never be found.
	Gone func(error) bool
}

// Router works the outbox off: it finds out who is told what, and puts it into inboxes and on the way through the
// channels that each person chose. It sends nothing itself, so that no channel can hold it up.
type Router struct{ RouterConfig }

// NewRouter makes a router.
func NewRouter(c RouterConfig) *Router {
	if c.OnInbox == nil {
		c.OnInbox = func(string) {}
	}
	return &Router{c}
}

// pruneEvery is how often what is older than Keep goes.
const pruneEvery = time.Hour

// Run until the context ends.
func (r *Router) Run(ctx context.Context) {
	look, prune := time.NewTicker(r.Poll), time.NewTicker(pruneEvery)
	defer look.Stop()
	defer prune.Stop()
	for {
		if err := r.Drain(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("news could not be routed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-prune.C:
			if err := r.Store.Prune(ctx, r.Now().Add(-r.Keep)); err != nil && ctx.Err() == nil {
				r.Log.Warn("old notifications could not be removed; it is tried again", "error", err)
			}
		case <-look.C:
		}
	}
}

const (
	// atOnce is how many changes are read and routed together, in one write.
	atOnce = 20
	// between two of these people who ask have the database for themselves; telling can wait so long.
	between = 25 * time.Millisecond
)

// Drain routes changes until there is none.
func (r *Router) Drain(ctx context.Context) error {
	for ctx.Err() == nil {
		changes, err := r.Store.Changes(ctx, atOnce)
		if err != nil || len(changes) == 0 {
			return err
		}
		if err := r.route(ctx, changes); err != nil {
			return err
		}
		if len(changes) < atOnce {
			continue
		}
		select {
		case <-time.After(between):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// route changes, up to one of which cannot be told now whom it is for.
func (r *Router) route(ctx context.Context, changes []Change) error {
	some, failed := r.told(ctx, changes)
	if len(some) > 0 {
		if err := r.Store.Route(ctx, some...); err != nil {
			return errors.Join(failed, err)
		}
	}
	for _, x := range some {
		for _, p := range x.Postings {
			if p.Channel == ChannelInbox {
				r.OnInbox(p.Person)
			}
		}
	}
	return failed
}

// told finds out who is told what; the error is of the first change of which that cannot be found out.
func (r *Router) told(ctx context.Context, changes []Change) (some []Routed, failed error) {
	people, err := r.People(ctx)
	if err != nil {
		return nil, err
	}
	messages := make([][]Message, 0, len(changes))
	var persons []string
	for _, c := range changes {
		var of []Message
		if of, failed = r.messages(ctx, c, people); failed != nil {
			if !r.Gone(failed) {
				break
			}
			r.Log.Error("nobody is told of a change, because what changed is not there", "ticket", c.Ticket, "delegation", c.Delegation, "error", failed)
			of, failed = nil, nil
		}
		messages = append(messages, of)
		for _, m := range of {
			if m.Person != "" {
				persons = append(persons, m.Person)
			}
		}
	}
	chosen := map[string]Preferences{}
	if len(persons) > 0 {
		slices.Sort(persons)
		if chosen, err = r.Store.Preferences(ctx, slices.Compact(persons)...); err != nil {
			return nil, err
		}
	}
	for i, of := range messages {
		some = append(some, Routed{changes[i], r.postings(of, chosen)})
	}
	return some, failed
}

func (r *Router) messages(ctx context.Context, c Change, people People) ([]Message, error) {
	if c.Bulletin != nil {
		return ForBulletin(*c.Bulletin, people), nil
	}
	if c.Ticket == 0 {
		d, err := r.Delegation(ctx, c.Delegation)
		if err != nil {
			return nil, err
		}
		return ForDelegation(d, people), nil
	}
	t, err := r.Ticket(ctx, c.Ticket)
	if err != nil {
		return nil, err
	}
	return For(t, c.First, c.Last, people), nil
}

func (r *Router) postings(messages []Message, chosen map[string]Preferences) (out []Posting) {
	now := r.Now()
	for _, m := range messages {
		if m.Person == "" {
			for _, b := range r.Broadcasts {
				if b.wants(m) {
					out = append(out, Posting{Message: m, Channel: b.Channel, RunAfter: now})
				}
			}
			continue
		}
		p := chosen[m.Person]
		out = append(out, Posting{Message: m, Channel: ChannelInbox})
		for _, c := range r.Channels {
			switch p.When(c, m.Kind) {
			case Now:
				out = append(out, Posting{Message: m, Channel: c, RunAfter: now})
			case Digest:
				out = append(out, Posting{Message: m, Channel: c, Digest: true, RunAfter: p.NextDigest(now)})
			}
		}
	}
	return out
}

// wants tells whether anybody is told something of the kinds.
func (b Broadcast) wants(m Message) bool {
	if len(b.Kinds) == 0 {
		return true
	}
	for _, k := range m.Facts.Told {
		if slices.Contains(b.Kinds, k) {
			return true
		}
	}
	return slices.Contains(b.Kinds, m.Kind)
}
