package approval

import (
	"context"
	"errors"
	"time"
)

// Errors of stores that are decisions for their callers rather than for people.
var (
	// ErrNoJob means that nothing can be leased now.
	ErrNoJob = errors.New("no job is due")
	// ErrLeaseLost means that another worker has the job, or it is done.
	ErrLeaseLost = errors.New("the job's lease is lost")
)

// Store keeps tickets, delegations, jobs and the ledger. Every method is one transaction: all of it is durable on
// return, or none. A store that cannot be read or written returns an *Error with CodeStoreUnavailable, and one that did
// not say whether it made a change an *Error with CodeOutcomeUnknown. Times are kept
// with a precision of microseconds, in UTC. Several replicas may use one store. Implementations pass approvaltest.Run.
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
	// List newest first by number, or by the last change if the filter says so. The tickets are to be looked at; whoever
	// changes one does so by Update.
	List(ctx context.Context, f Filter) ([]*Ticket, error)
	// Count the tickets of each filter, without regard to cursor and limit, up to CountLimit.
	Count(ctx context.Context, f ...Filter) ([]int, error)
	// ClaimedBy is the ticket that holds one of the claims; 0: none.
	ClaimedBy(ctx context.Context, claims []Claim) (int64, error)
	// ChangedSince lists the tickets that were updated at or after an instant.
	ChangedSince(ctx context.Context, since time.Time) ([]TicketChange, error)

	// Delegate numbers and stores a new delegation with its ledger line.
	Delegate(ctx context.Context, d Delegation) (Delegation, error)
	// EndDelegation loads a delegation, applies a change to its end and stores it with its ledger line; CodeNotFound if
	// there is none. An error of the change is returned as it is and changes nothing.
	EndDelegation(ctx context.Context, id int64, change func(*Delegation) error) (Delegation, error)
	// Delegations newest first.
	Delegations(ctx context.Context, f DelegationFilter) ([]Delegation, error)

	// Lease the oldest job that is due for a worker, until now+ttl. A job waits for the earlier ones of its key, except
	// for parked ones. A lease or a wait that ends later than the longest could, by more than ClockTolerance, was given by
	// a clock that was ahead, and counts as ended. ErrNoJob if there is none.
	Lease(ctx context.Context, worker string, now time.Time, ttl time.Duration) (*Job, error)
	// Finish removes a job that the worker still leases and applies a transition to its ticket. ErrLeaseLost otherwise.
	Finish(ctx context.Context, j *Job, change func(*Ticket) error) (*Ticket, error)
	// Postpone gives a leased job back until an instant and applies a transition. A parked job lets later ones of its
	// key pass. ErrLeaseLost if the worker has it no more.
	Postpone(ctx context.Context, j *Job, until time.Time, parked bool, change func(*Ticket) error) (*Ticket, error)
	// Ping tells whether the store can be read and written.
	Ping(ctx context.Context) error
}

const (
	// LongestRetry is the longest that a job waits to be tried again, LongestParked that of a parked one.
	LongestRetry, LongestParked = 5 * time.Second, 10 * time.Minute
	// ClockTolerance is how far the clocks of replicas may be apart without one taking what another one holds.
	ClockTolerance = time.Minute
)

// CountLimit is where counting ends: who has a thousand things to do needs no better number, and counting all of a
// hundred thousand each time a page opens is not free.
const CountLimit = 1000

// Filter selects tickets; zero fields select all. What is about items must hold for one item together.
type Filter struct {
	Numbers   []int64 // one of these
	Text      string  // beginnings of words of the reason or of an id of the requester, an application or a resource, as package tokenize splits them
	Requester string
	Kinds     []Kind
	States    []State  // the ticket's, that is the sum
	WaitsFor  *Waits   // an item waits for this person's decision or review
	DecidedBy string   // this person decided an item, himself or through a delegate
	VisibleTo *Visible // nil: everything

	// Of one item.
	ItemStates  []State
	Application string    // catalog id
	Resource    string    // catalog id
	Policy      string    // the object that holds it
	Target      *Target   // it extends or revokes this grant
	DueBy       time.Time // time alone does something to it at or before this instant, as Item.Due says
	ExpiresBy   time.Time // has an expiry at or before this instant

	Oldest   bool   // order by number, the oldest first; has no cursor
	ByUpdate bool   // order by the last change, then the number
	After    Cursor // continue behind this ticket; zero: from the newest
	Limit    int    // 0: all
	Passing  bool   // a page of many that are read in passing: nobody looks at it again soon
}

// Cursor is the place of a ticket in a list; UpdatedAt counts only in lists by update.
type Cursor struct {
	UpdatedAt time.Time
	Number    int64
}

// Waits selects what somebody may decide now: what waits for himself, and what waits for those whom he stands for,
// except for items that he has decided and tickets that he asked for.
type Waits struct {
	Person    string
	StandsFor []string
}

// Visible restricts a list to what a person may see: what he asked for or has to decide, what those for whom he stands
// have to decide, and what is about these applications and resources (resource names).
type Visible struct {
	Person                  string
	StandsFor               []string
	Applications, Resources []string
}

// DelegationFilter selects delegations; zero fields select all.
type DelegationFilter struct {
	From, To string
	ActiveAt time.Time
	Before   int64 // ids below; 0: from the newest
	Limit    int   // 0: all
}

// TicketChange is a hint that a ticket is no longer as it was.
type TicketChange struct {
	Number    int64
	State     State
	Version   int64
	UpdatedAt time.Time
}

// JobKind is what a job does to the host cluster.
type JobKind string

const (
	JobApply  JobKind = "apply"  // the statement or object of the item is there; of a revocation: its target is being revoked
	JobRemove JobKind = "remove" // the statement is not there, and never will be again
)

// Job is one piece of work of the outbox.
type Job struct {
	ID         int64
	Ticket     int64
	Item       int
	Kind       JobKind
	Key        string // jobs of one key are done in the order of their ids
	Attempts   int    // how often it was leased, this time included
	Worker     string
	LeaseUntil time.Time
}
