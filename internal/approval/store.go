package approval

import (
	"context"
	"errors"
	"time"
)

// Errors of stores that are decisions for their callers rather than for people.
var (
	// ErrNoJob: nothing can be leased now.
	ErrNoJob = errors.New("no job is due")
	// ErrLeaseLost: another worker has the job, or it is done.
	ErrLeaseLost = errors.New("the job's lease is lost")
)

// Store keeps tickets, their jobs and the ledger. Every method is one transaction: all of it is durable on return, or
// none. A store that cannot be read or written returns an *Error with CodeStoreUnavailable. Times are kept with a
// precision of microseconds, in UTC. Implementations pass approvaltest.Run.
type Store interface {
	// Create numbers and stores a new ticket with its events, claims, jobs and ledger lines. A ticket of the same
	// requester with the same IdempotencyKey is returned instead. A claim that another ticket holds is an *Error with
	// CodeDuplicate and that ticket's number.
	Create(ctx context.Context, t *Ticket) (*Ticket, error)
	// Get one ticket; CodeNotFound if there is none.
	Get(ctx context.Context, number int64) (*Ticket, error)
	// Update loads a ticket, applies a transition and stores what it changed, with ledger lines, claims and jobs. No
	// other update of the ticket comes between. An error of the transition is returned as it is and changes nothing.
	Update(ctx context.Context, number int64, change func(*Ticket) error) (*Ticket, error)
	// List newest first.
	List(ctx context.Context, f Filter) ([]*Ticket, error)
	// CountWaiting counts the pending tickets whose current step a person can decide.
	CountWaiting(ctx context.Context, person string) (int, error)
	// ClaimedBy is the ticket that holds one of the claims; 0: none.
	ClaimedBy(ctx context.Context, claims []Claim) (int64, error)
	// ChangedSince lists the tickets that were updated at or after an instant.
	ChangedSince(ctx context.Context, since time.Time) ([]Change, error)

	// Lease the oldest job that is due for a worker, until now+ttl. A job waits for the earlier ones of its resource,
	// except for parked ones. ErrNoJob if there is none.
	Lease(ctx context.Context, worker string, now time.Time, ttl time.Duration) (*Job, error)
	// Finish removes a job that the worker still leases and applies a transition to its ticket. ErrLeaseLost otherwise.
	Finish(ctx context.Context, j *Job, change func(*Ticket) error) (*Ticket, error)
	// Postpone gives a leased job back until an instant and applies a transition. A parked job lets later ones of its
	// resource pass. ErrLeaseLost if the worker has it no more.
	Postpone(ctx context.Context, j *Job, until time.Time, parked bool, change func(*Ticket) error) (*Ticket, error)
	// Ping tells whether the store can be read and written.
	Ping(ctx context.Context) error
}

// Filter selects tickets; zero fields select all.
type Filter struct {
	Requester   string
	WaitsFor    string // pending, and this person can decide the current step
	DecidedBy   string
	VisibleTo   *Visible
	States      []State
	Application string
	Resource    string
	Policy      string
	ExpiredBy   time.Time // has an expiry at or before this instant
	Before      int64     // ticket numbers below; 0: from the newest
	Limit       int       // 0: all
}

// Visible restricts a list to what a person may see: what he asked for or has to decide, and what is about these
// applications and resources.
type Visible struct {
	Person                  string
	Applications, Resources []string
}

// Change is a hint that a ticket is no longer as it was.
type Change struct {
	Number    int64
	State     State
	Version   int64
	UpdatedAt time.Time
}

// JobKind is what a job does to the host cluster.
type JobKind string

const (
	JobApply  JobKind = "apply"  // the policy holds the ticket's statements
	JobRemove JobKind = "remove" // the policy does not hold them, and never will again
)

// Job is one piece of work of the outbox.
type Job struct {
	ID         int64
	Ticket     int64
	Kind       JobKind
	Resource   string // resource name; jobs of one resource are done in the order of their ids
	Attempts   int    // how often it was leased, this time included
	Worker     string
	LeaseUntil time.Time
}
