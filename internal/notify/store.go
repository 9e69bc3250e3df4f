package notify

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// ErrLeaseLost means that another courier has the deliveries, or they are done.
var ErrLeaseLost = errors.New("the lease of the deliveries is lost")

// Change is a row of the outbox: events of a ticket, a delegation, or a bulletin, that nobody was told of yet.
type Change struct {
	ID          int64
	Ticket      int64 // 0: it is about something else
	First, Last int   // events of the ticket, Last excluded
	Delegation  int64
	Bulletin    *Bulletin
}

// News are the events of a ticket that are not stored yet, if any of them may concern anybody. A store writes them to
// the outbox with the change.
func News(t *approval.Ticket) (first, last int, ok bool) {
	first = len(t.Events)
	for i := len(t.Events) - 1; i >= 0 && !t.Events[i].Saved; i-- {
		first = i
		ok = ok || tells(t.Events[i].Kind)
	}
	return first, len(t.Events), ok
}

// tells excludes what members do meanwhile: it is in the timeline, and no news.
func tells(k approval.EventKind) bool {
	switch k {
	case approval.EventWritten, approval.EventCompiled, approval.EventPropagated, approval.EventRealized, approval.EventRevokeWritten, approval.EventReduced:
		return false
	}
	return true
}

// Posting is a message on its way through one channel.
type Posting struct {
	Message
	Channel  Channel
	Digest   bool // wait for others of the person
	RunAfter time.Time
}

// Delivery is a posting that a courier has leased.
type Delivery struct {
	ID int64
	Posting
	Attempts int // this one included
	Worker   string
}

// Notice is a line of somebody's inbox.
type Notice struct {
	ID int64
	Message
	Read bool
}

// Waiting is what is on its way through one channel, or was given up.
type Waiting struct {
	Channel Channel
	Queued  int64
	Dead    int64
	Oldest  time.Time // when the oldest that is queued was due first; zero: none is
}

// Arrival is a notice in somebody's inbox.
type Arrival struct {
	ID     int64
	Person string
}

// DeadLetter is a posting that was given up.
type DeadLetter struct {
	ID int64
	Posting
	Attempts int
	Problem  string // why the last attempt failed
	GivenUp  time.Time
}

// DeadFilter selects dead letters, those that were written last first.
type DeadFilter struct {
	Channel Channel // empty: all
	Before  int64   // a cursor: only ids below; 0: from the newest
	Limit   int     // at most MaxPage; 0: DefaultPage
}

// InboxFilter selects notices of one person, the newest first.
type InboxFilter struct {
	Person string
	Unread bool  // only these
	Before int64 // a cursor: only ids below; 0: from the newest
	Limit  int   // at most MaxPage; 0: DefaultPage
}

// Sizes of a page.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// Routed is a change with what is told of it.
type Routed struct {
	Change   Change
	Postings []Posting
}

// Store keeps the outbox, what is on its way, inboxes and preferences. Every method is one transaction. Several
// replicas may use one store.
type Store interface {
	// Changes of the outbox, the oldest first.
	Changes(ctx context.Context, limit int) ([]Change, error)
	// Route stores the postings of changes and removes them from the outbox; of a change that is not there any more, which
	// another replica has routed, nothing is stored. A posting whose person, event and channel are there already is left out.
	Route(ctx context.Context, some ...Routed) error

	// Preferences of people; who chose nothing is not in it.
	Preferences(ctx context.Context, people ...string) (map[string]Preferences, error)
	// SetPreferences replaces them. They were validated.
	SetPreferences(ctx context.Context, person string, p Preferences, at time.Time) error

	// Inbox returns notices and the cursor of the next page; 0: there is none.
	Inbox(ctx context.Context, f InboxFilter) (notices []Notice, next int64, err error)
	// Unread counts.
	Unread(ctx context.Context, person string) (int, error)
	// Mark notices of this person, and of nobody else, as read or as not read.
	Mark(ctx context.Context, person string, ids []int64, read bool, at time.Time) error
	// MarkAllRead marks the person's notices up to an id as read; 0: all.
	MarkAllRead(ctx context.Context, person string, upTo int64, at time.Time) error

	// Arrived returns notices of all inboxes above an id, the oldest first. Below 0: only the newest one there is.
	Arrived(ctx context.Context, after int64, limit int) ([]Arrival, error)

	// Lease what is due on a channel for a worker, until now+ttl: one posting, or all of one person's digest. Nothing:
	// nothing is due.
	Lease(ctx context.Context, c Channel, worker string, now time.Time, ttl time.Duration) ([]Delivery, error)
	// Sent ends deliveries. ErrLeaseLost if the worker has them no more.
	Sent(ctx context.Context, d []Delivery, at time.Time) error
	// Postpone deliveries that failed. ErrLeaseLost if the worker has them no more.
	Postpone(ctx context.Context, d []Delivery, until time.Time, problem string) error
	// Bury deliveries that cannot succeed. ErrLeaseLost if the worker has them no more.
	Bury(ctx context.Context, d []Delivery, at time.Time, problem string) error

	// Dead returns dead letters and the cursor of the next page; 0: there is none.
	Dead(ctx context.Context, f DeadFilter) (letters []DeadLetter, next int64, err error)
	// Revive puts dead letters, all of them without ids, on their way again as if nobody had tried, and says how many.
	Revive(ctx context.Context, ids []int64, now time.Time) (int64, error)

	// Waiting counts what is on its way and what was given up, and the changes that are not routed yet.
	Waiting(ctx context.Context) (channels []Waiting, changes int64, err error)
	// Prune removes what was sent, read or given up before an instant.
	Prune(ctx context.Context, before time.Time) error
}
