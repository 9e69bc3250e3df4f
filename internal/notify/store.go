package notify

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// ErrLeaseLost means that another dispatcher has the deliveries, or that they are done.
var ErrLeaseLost = errors.New("the lease of the deliveries is lost")

// Change is a row of the outbox: events of a ticket, a delegation, or an event of a resource that have not been routed yet.
type Change struct {
	ID            int64
	Ticket        int64 // 0 if the change is not about a ticket
	First, Last   int   // indexes of the ticket's events; Last is exclusive
	Delegation    int64
	ResourceEvent *ResourceEvent
}

// UnnotifiedEvents returns the range of the ticket's events that are not stored yet; ok reports whether any of them may need a
// notification. A store writes the range to the outbox in the transaction of the change.
func UnnotifiedEvents(t *approval.Ticket) (first, last int, ok bool) {
	first = len(t.Events)
	for i := len(t.Events) - 1; i >= 0 && !t.Events[i].Saved; i-- {
		first = i
		ok = ok || notifies(t.Events[i].Kind)
	}
	return first, len(t.Events), ok
}

// notifies reports whether events of the kind can lead to a notification. Progress in the members only appears in the timeline.
func notifies(k approval.EventKind) bool {
	switch k {
	case approval.EventWritten, approval.EventCompiled, approval.EventPropagated, approval.EventRealized, approval.EventRevokeWritten, approval.EventReduced:
		return false
	}
	return true
}

// QueuedMessage is a message that is queued for one channel.
type QueuedMessage struct {
	Message
	Channel  Channel
	Digest   bool // the message waits to be combined with others of the person
	RunAfter time.Time
}

// Delivery is a queued message that a dispatcher has leased.
type Delivery struct {
	ID int64
	QueuedMessage
	Attempts int // including this one
	Worker   string
	// Retraction reports whether the message was sent, and its controls have to be replaced by Outcome.
	Retraction bool
	// Receipt identifies a message at the channel whose controls can be replaced. A dispatcher sets it before it calls Sent.
	Receipt string
	// Outcome is what happened to the ticket since the message was made; zero if nothing did.
	Outcome message.Message
}

// Notice is a message in a person's inbox.
type Notice struct {
	ID int64
	Message
	Read bool
}

// QueueStats are the numbers of queued and dead messages of one channel.
type QueueStats struct {
	Channel Channel
	Queued  int64
	Dead    int64
	Oldest  time.Time // when the oldest queued message became due; zero if there is none
}

// Arrival is a new notice in any inbox.
type Arrival struct {
	ID     int64
	Person string
}

// DeadLetter is a queued message that failed permanently.
type DeadLetter struct {
	ID int64
	QueuedMessage
	Attempts int
	Problem  string // error of the last attempt
	GivenUp  time.Time
}

// DeadFilter selects dead letters, newest first.
type DeadFilter struct {
	Channel Channel // empty for all
	Before  int64   // cursor: only smaller IDs; 0 starts with the newest
	Limit   int     // at most MaxPage; 0 means DefaultPage
}

// InboxFilter selects notices of one person, newest first.
type InboxFilter struct {
	Person string
	Unread bool  // only unread ones
	Before int64 // cursor: only smaller IDs; 0 starts with the newest
	Limit  int   // at most MaxPage; 0 means DefaultPage
}

// DefaultPage and MaxPage are the default and the maximum number of items of a page.
const (
	// DefaultPage is the number of messages of a page if the query has no limit.
	DefaultPage = 50
	// MaxPage is the maximum number of messages of a page.
	MaxPage = 200
)

// Routed is a change with its messages.
type Routed struct {
	Change   Change
	Messages []QueuedMessage
	// Supersession is set if the change is about a ticket.
	Supersession *Supersession
}

// Supersession reports a change of a ticket, after which the buttons of messages about its earlier versions have no effect.
type Supersession struct {
	Ticket  int64
	Version int64           // the version of the ticket
	Outcome message.Message // what replaces the controls
	At      time.Time       // when the retractions are due
	// Except are the people who made the change in a message, which shows the result already.
	Except []string
}

// Store stores the outbox, queued messages, inboxes and preferences. Every method is one transaction. Several replicas may use
// one store.
type Store interface {
	// Changes returns changes of the outbox, oldest first.
	Changes(ctx context.Context, limit int) ([]Change, error)
	// Route stores the messages of changes and removes the changes from the outbox. It ignores a change that is no longer in the
	// outbox, because another replica has routed it, and a queued message whose person, event and channel exist already. With a
	// Supersession, messages with controls for an earlier version of the ticket get its outcome: those that were sent with a receipt
	// are queued as retractions, those that are not sent yet are sent without controls. An outcome that a message has already
	// changes nothing.
	Route(ctx context.Context, some ...Routed) error

	// Preferences returns the preferences of people. People without preferences are not in the result.
	Preferences(ctx context.Context, people ...string) (map[string]Preferences, error)
	// SetPreferences replaces the preferences of a person. The caller has validated them.
	SetPreferences(ctx context.Context, person string, p Preferences, at time.Time) error

	// Inbox returns notices and the cursor of the next page; 0 if there is none.
	Inbox(ctx context.Context, f InboxFilter) (notices []Notice, next int64, err error)
	// Unread returns the number of unread notices of the person.
	Unread(ctx context.Context, person string) (int, error)
	// Mark marks notices as read or unread. It ignores notices of other people.
	Mark(ctx context.Context, person string, ids []int64, read bool, at time.Time) error
	// MarkAllRead marks the person's notices up to an ID as read; 0 means all.
	MarkAllRead(ctx context.Context, person string, upTo int64, at time.Time) error

	// Arrived returns notices of all inboxes with larger IDs, oldest first. If after is negative, it returns only the newest notice.
	Arrived(ctx context.Context, after int64, limit int) ([]Arrival, error)

	// Lease leases due deliveries of a channel to a worker until now+ttl: one queued message, or all those of one person's digest, or,
	// if no message is due, one retraction. It returns nothing if nothing is due.
	Lease(ctx context.Context, c Channel, worker string, now time.Time, ttl time.Duration) ([]Delivery, error)
	// Sent marks deliveries as sent, and retractions as done. A message whose ticket changed while it was sent is queued as a retraction
	// if it has a receipt. Sent returns ErrLeaseLost if the worker no longer holds the lease.
	Sent(ctx context.Context, d []Delivery, at time.Time) error
	// Postpone schedules failed deliveries again. It returns ErrLeaseLost if the worker no longer holds the lease.
	Postpone(ctx context.Context, d []Delivery, until time.Time, problem string) error
	// MarkDead marks deliveries as dead letters. It returns ErrLeaseLost if the worker no longer holds the lease.
	MarkDead(ctx context.Context, d []Delivery, at time.Time, problem string) error

	// DeadLetters returns dead letters and the cursor of the next page; 0 if there is none.
	DeadLetters(ctx context.Context, f DeadFilter) (letters []DeadLetter, next int64, err error)
	// Requeue queues dead letters again, with no attempts counted, and returns their number. If ids is nil, it requeues all.
	Requeue(ctx context.Context, ids []int64, now time.Time) (int64, error)

	// QueueStats returns the numbers of queued and dead messages by channel, and of changes that are not routed yet.
	QueueStats(ctx context.Context) (channels []QueueStats, changes int64, err error)
	// Prune removes messages that were sent, read or marked as dead before an instant, with their retractions.
	Prune(ctx context.Context, before time.Time) error
}
