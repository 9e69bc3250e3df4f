package core

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// event is a change of a ticket, of the protection of a resource (by its resource name), or of a person's inbox.
type event struct {
	ticket   *approval.Ticket
	resource string
	inbox    string
}

const (
	// subscriberBuffer is the number of events after which a slow stream is closed. Its page reads everything again when it
	// reconnects.
	subscriberBuffer  = 64
	rememberedTickets = 10_000
	// streamsPerPerson is the maximum number of open streams of one person. A page has one.
	streamsPerPerson = 32
)

// Hub distributes changes to all open event streams. It never waits for a stream; slow ones are closed.
type Hub struct {
	mu       sync.Mutex
	subs     map[chan event]string // the person whose stream it is
	versions map[int64]int64       // the newest published version by ticket
}

// NewHub returns a hub without streams.
func NewHub() *Hub { return &Hub{subs: map[chan event]string{}, versions: map[int64]int64{}} }

// Ticket publishes a change of a ticket, unless the version was published before.
func (h *Hub) Ticket(t *approval.Ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.versions[t.Number] >= t.Version {
		return
	}
	if len(h.versions) >= rememberedTickets {
		clear(h.versions)
	}
	h.versions[t.Number] = t.Version
	h.send(event{ticket: t})
}

// Resource publishes a change of the protection of a resource.
func (h *Hub) Resource(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(event{resource: name})
}

// Inbox publishes a change of a person's inbox, to the streams of that person only.
func (h *Hub) Inbox(person string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(event{inbox: person})
}

func (h *Hub) send(n event) {
	for ch, person := range h.subs {
		if n.inbox != "" && n.inbox != person {
			continue
		}
		select {
		case ch <- n:
		default:
			delete(h.subs, ch)
			close(ch)
		}
	}
}

// subscribe returns a channel of events, which is closed when its reader is too slow, and a function that ends the subscription.
// It returns false if the person has too many streams.
func (h *Hub) subscribe(person string) (<-chan event, func(), bool) {
	ch := make(chan event, subscriberBuffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	open := 0
	for _, p := range h.subs {
		if p == person {
			open++
		}
	}
	if open >= streamsPerPerson {
		return nil, nil, false
	}
	h.subs[ch] = person
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, open := h.subs[ch]; open {
			delete(h.subs, ch)
			close(ch)
		}
	}, true
}

// open returns the number of streams.
func (h *Hub) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

// FollowStore publishes changes of tickets by other replicas.
func (h *Hub) FollowStore(ctx context.Context, store approval.TicketStore, now func() time.Time, every time.Duration, log *slog.Logger) {
	// The overlap covers transactions with an earlier time stamp that committed after the previous query.
	const overlap = 5 * time.Second
	since := now()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		next := now()
		changes, err := store.ChangedSince(ctx, since.Add(-overlap))
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("changes of other replicas could not be read", "error", err)
			}
			continue
		}
		for _, c := range changes {
			if h.published(c.Number, c.Version) {
				continue
			}
			x, err := store.Get(ctx, c.Number)
			if err != nil {
				next = since // so that it is read again
				if ctx.Err() == nil {
					log.Warn("a ticket that another replica changed could not be read; retrying", "ticket", approval.FormatID(c.Number), "error", err)
				}
				continue
			}
			h.Ticket(x)
		}
		since = next
	}
}

func (h *Hub) published(number, version int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[number] >= version
}
