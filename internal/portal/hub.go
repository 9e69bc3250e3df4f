package portal

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// news is one thing that changed: a ticket, a resource's protection by its resource name, or a person's inbox.
type news struct {
	ticket   *approval.Ticket
	resource string
	inbox    string
}

const (
	// A page that is this many news behind reads everything again when it reconnects.
	subscriberBuffer = 64
	rememberTickets  = 10_000
	// One stream per page; more than a person has open would only use up the portal's connections.
	streamsPerPerson = 32
)

// Hub tells every open event stream what changed. It never waits for one: a slow stream is closed.
type Hub struct {
	mu   sync.Mutex
	subs map[chan news]string // the person whose stream it is
	seen map[int64]int64      // ticket -> the newest version that was told
}

// NewHub makes a hub without streams.
func NewHub() *Hub { return &Hub{subs: map[chan news]string{}, seen: map[int64]int64{}} }

// Ticket changed; a version that was told already is not told again.
func (h *Hub) Ticket(t *approval.Ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[t.Number] >= t.Version {
		return
	}
	if len(h.seen) >= rememberTickets {
		clear(h.seen)
	}
	h.seen[t.Number] = t.Version
	h.send(news{ticket: t})
}

// Resource protection changed.
func (h *Hub) Resource(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(news{resource: name})
}

// Inbox of a person has something new; nobody else hears of it.
func (h *Hub) Inbox(person string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(news{inbox: person})
}

func (h *Hub) send(n news) {
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

// subscribe returns a channel that is closed when it falls behind, and what ends it; false: the person has enough.
func (h *Hub) subscribe(person string) (<-chan news, func(), bool) {
	ch := make(chan news, subscriberBuffer)
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

// open counts the streams.
func (h *Hub) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

// FollowStore finds what other replicas changed.
func (h *Hub) FollowStore(ctx context.Context, store approval.TicketStore, now func() time.Time, every time.Duration, log *slog.Logger) {
	// Looking back covers transactions that were stamped before, and committed after, the last look.
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
				log.Warn("changes of other replicas are not known", "error", err)
			}
			continue
		}
		for _, c := range changes {
			if h.told(c.Number, c.Version) {
				continue
			}
			x, err := store.Get(ctx, c.Number)
			if err != nil {
				next = since // so that it is looked at again
				if ctx.Err() == nil {
					log.Warn("a ticket that another replica changed could not be read; it is tried again", "ticket", approval.FormatID(c.Number), "error", err)
				}
				continue
			}
			h.Ticket(x)
		}
		since = next
	}
}

func (h *Hub) told(number, version int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[number] >= version
}
