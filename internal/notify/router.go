package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// SharedChannel is a channel that belongs to no person, such as that of a team, with the kinds of notifications that it gets.
type SharedChannel struct {
	Channel Channel
	Kinds   []Kind // kinds that are sent; empty means all
}

// RouterConfig configures a Router. OnInbox is optional, the other fields are required.
type RouterConfig struct {
	// Store contains the outbox, the inboxes and the queues of the channels.
	Store Store
	// Ticket returns the ticket with a number.
	Ticket func(ctx context.Context, number int64) (*approval.Ticket, error)
	// Delegation returns the delegation with an id.
	Delegation func(ctx context.Context, id int64) (approval.Delegation, error)
	// People returns the people who can be recipients.
	People func(ctx context.Context) (People, error)
	// Channels contains the channels of people, except the inbox.
	Channels []Channel
	// SharedChannels contains the channels that belong to no person.
	SharedChannels []SharedChannel
	// OnInbox is called when a person's inbox gets a message.
	OnInbox func(person string)
	// Now returns the current time.
	Now func() time.Time
	// Log gets the errors of rounds.
	Log *slog.Logger
	// Poll is the interval at which the outbox is read if nothing signals a change.
	Poll time.Duration
	// Keep is how long read, sent and dead messages are kept.
	Keep time.Duration
	// Gone reports whether an error means that the ticket or delegation does not exist, so that a retry does not help.
	Gone func(error) bool
}

// Router processes the outbox: it determines the recipients of each change, and adds messages to their inboxes and to the queues
// of the channels that they chose. It does not send, so no channel can delay it.
type Router struct{ RouterConfig }

// NewRouter returns a Router.
func NewRouter(c RouterConfig) *Router {
	if c.OnInbox == nil {
		c.OnInbox = func(string) {}
	}
	return &Router{c}
}

// pruneEvery is the interval between two removals of messages that are older than Keep.
const pruneEvery = time.Hour

// Run routes changes every Poll, and prunes old messages, until the context ends.
func (r *Router) Run(ctx context.Context) {
	poll, prune := time.NewTicker(r.Poll), time.NewTicker(pruneEvery)
	defer poll.Stop()
	defer prune.Stop()
	for {
		if err := r.Drain(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("changes could not be routed; the router retries", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-prune.C:
			if err := r.Store.Prune(ctx, r.Now().Add(-r.Keep)); err != nil && ctx.Err() == nil {
				r.Log.Warn("old notifications could not be removed; the removal is retried", "error", err)
			}
		case <-poll.C:
		}
	}
}

const (
	// batchSize is the number of changes that are routed in one transaction.
	batchSize = 20
	// batchPause is the pause between two batches, in which requests of users can use the database.
	batchPause = 25 * time.Millisecond
)

// Drain routes changes until the outbox is empty.
func (r *Router) Drain(ctx context.Context) error {
	for ctx.Err() == nil {
		changes, err := r.Store.Changes(ctx, batchSize)
		if err != nil || len(changes) == 0 {
			return err
		}
		if err := r.route(ctx, changes); err != nil {
			return err
		}
		if len(changes) < batchSize {
			continue
		}
		select {
		case <-time.After(batchPause):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// route stores the messages for the changes, up to the first change whose recipients cannot be determined now, and returns its
// error.
func (r *Router) route(ctx context.Context, changes []Change) error {
	routed, failed := r.resolve(ctx, changes)
	if len(routed) > 0 {
		if err := r.Store.Route(ctx, routed...); err != nil {
			return errors.Join(failed, err)
		}
	}
	for _, x := range routed {
		for _, p := range x.Messages {
			if p.Channel == ChannelInbox {
				r.OnInbox(p.Person)
			}
		}
	}
	return failed
}

// resolve determines the messages for the changes. The error belongs to the first change for which this failed; the changes
// before it are returned.
func (r *Router) resolve(ctx context.Context, changes []Change) (routed []Routed, failed error) {
	people, err := r.People(ctx)
	if err != nil {
		return nil, err
	}
	messages := make([][]Message, 0, len(changes))
	supersessions := make([]*Supersession, 0, len(changes))
	var persons []string
	for _, c := range changes {
		var ofChange []Message
		var supersession *Supersession
		if ofChange, supersession, failed = r.messages(ctx, c, people); failed != nil {
			if !r.Gone(failed) {
				break
			}
			r.Log.Error(
				"a change is not notified, because its ticket or delegation does not exist",
				"ticket",
				c.Ticket,
				"delegation",
				c.Delegation,
				"error",
				failed,
			)
			ofChange, failed = nil, nil
		}
		messages, supersessions = append(messages, ofChange), append(supersessions, supersession)
		for _, m := range ofChange {
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
	for i, ofChange := range messages {
		routed = append(routed, Routed{changes[i], r.queuedMessages(ofChange, chosen), supersessions[i]})
	}
	return routed, failed
}

// messages returns the messages for a change, and what it does to earlier messages if it is about a ticket.
func (r *Router) messages(ctx context.Context, c Change, people People) ([]Message, *Supersession, error) {
	if c.ResourceEvent != nil {
		return MessagesForResourceEvent(*c.ResourceEvent, people), nil, nil
	}
	if c.Ticket == 0 {
		d, err := r.Delegation(ctx, c.Delegation)
		if err != nil {
			return nil, nil, err
		}
		return MessagesForDelegation(d, people), nil, nil
	}
	t, err := r.Ticket(ctx, c.Ticket)
	if err != nil {
		return nil, nil, err
	}
	return MessagesForTicket(t, c.First, c.Last, people), supersessionOf(t, c.First, c.Last, r.Now()), nil
}

func (r *Router) queuedMessages(messages []Message, chosen map[string]Preferences) (out []QueuedMessage) {
	now := r.Now()
	for _, m := range messages {
		if m.Person == "" {
			for _, b := range r.SharedChannels {
				if b.wants(m) {
					out = append(out, QueuedMessage{Message: m, Channel: b.Channel, RunAfter: now})
				}
			}
			continue
		}
		p := chosen[m.Person]
		out = append(out, QueuedMessage{Message: m, Channel: ChannelInbox})
		for _, c := range r.Channels {
			switch p.Timing(c, m.Kind) {
			case Immediately:
				out = append(out, QueuedMessage{Message: m, Channel: c, RunAfter: now})
			case Digest:
				out = append(out, QueuedMessage{Message: m, Channel: c, Digest: true, RunAfter: p.NextDigest(now)})
			}
		}
	}
	return out
}

// wants reports whether the broadcast sends the kind of the message, or a kind of one of its recipients.
func (b SharedChannel) wants(m Message) bool {
	if len(b.Kinds) == 0 {
		return true
	}
	for _, k := range m.Facts.Recipients {
		if slices.Contains(b.Kinds, k) {
			return true
		}
	}
	return slices.Contains(b.Kinds, m.Kind)
}
