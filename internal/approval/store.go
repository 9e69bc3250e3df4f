package approval

import (
	"context"
	"errors"
	"time"
)

// Errors of stores for their callers, which are not shown to people.
var (
	// ErrNoJob means that no job can be leased now.
	ErrNoJob = errors.New("no job is due")
	// ErrLeaseLost means that another worker has leased the job, or that it is done.
	ErrLeaseLost = errors.New("the job's lease is lost")
)

// TicketStore, DelegationStore and Outbox store what this package decides, together with the ledger. Every method is one
// transaction: all of it is durable on return, or none. A store that cannot be read or written returns an *Error with
// CodeStoreUnavailable, and one whose answer to a commit is unknown returns an *Error with CodeOutcomeUnknown. Times have
// microseconds, in UTC. Several replicas may use one store. Implementations pass the suites of package approvaltest.

// TicketStore stores tickets with their jobs.
type TicketStore interface {
	// Create numbers and stores a new ticket with its events, claims, jobs and ledger lines. A ticket of the same
	// requester with the same IdempotencyKey is returned instead. If another ticket holds a claim, it returns an *Error
	// with CodeDuplicate and that ticket's number.
	Create(ctx context.Context, t *Ticket) (*Ticket, error)
	// Get returns one ticket; CodeNotFound if there is none.
	Get(ctx context.Context, number int64) (*Ticket, error)
	// Update loads a ticket, applies a transition and stores what it changed, with ledger lines, claims and jobs. Updates
	// of one ticket are serialized. An error of the transition is returned unchanged, and nothing is stored.
	Update(ctx context.Context, number int64, change func(*Ticket) error) (*Ticket, error)
	// List returns tickets in the order of the filter: newest first by number, unless it says otherwise. They must not be
	// changed; use Update.
	List(ctx context.Context, f Filter) ([]*Ticket, error)
	// Count returns the number of tickets of each filter, without its cursor and limit, up to CountLimit.
	Count(ctx context.Context, f ...Filter) ([]int, error)
	// ClaimedBy returns the ticket that holds one of the claims; 0 if there is none.
	ClaimedBy(ctx context.Context, claims []Claim) (int64, error)
	// Claimants returns the tickets that hold the claims. A claim that no ticket holds is missing.
	Claimants(ctx context.Context, claims []Claim) (map[Claim]int64, error)
	// ChangedSince returns the tickets that were updated at or after an instant.
	ChangedSince(ctx context.Context, since time.Time) ([]TicketChange, error)
	// Ping returns an error if the store cannot be read and written.
	Ping(ctx context.Context) error
}

// DelegationStore stores delegations.
type DelegationStore interface {
	// Delegate numbers and stores a new delegation with its ledger entry. It returns the error of CheckDelegation for the
	// delegations that have not ended by CreatedAt, also if several are made at the same time.
	Delegate(ctx context.Context, d Delegation) (Delegation, error)
	// EndDelegation loads a delegation, applies a change to its end and stores it with its ledger entry; CodeNotFound if
	// there is none. An error of the change is returned unchanged, and nothing is stored.
	EndDelegation(ctx context.Context, id int64, change func(*Delegation) error) (Delegation, error)
	// Delegations returns delegations, newest first.
	Delegations(ctx context.Context, f DelegationFilter) ([]Delegation, error)
}

// Outbox leases the jobs that a TicketStore stored.
type Outbox interface {
	// Lease leases the oldest job that is due to a worker, until now+ttl; ErrNoJob if there is none. A job waits for the
	// earlier ones of its key, except for parked ones. A lease or a wait that ends later than the longest possible one, by
	// more than ClockTolerance, came from a clock that was ahead, and counts as ended.
	Lease(ctx context.Context, worker string, now time.Time, ttl time.Duration) (*Job, error)
	// Finish removes a job that the worker has leased and applies a transition to its ticket; ErrLeaseLost if the lease is
	// lost.
	Finish(ctx context.Context, j *Job, change func(*Ticket) error) (*Ticket, error)
	// Postpone returns a leased job until an instant and applies a transition to its ticket; ErrLeaseLost if the lease is
	// lost. Later jobs of the key need not wait for a parked job.
	Postpone(ctx context.Context, j *Job, until time.Time, parked bool, change func(*Ticket) error) (*Ticket, error)
}

const (
	// LongestRetry is the longest time after which a job that failed is tried again.
	LongestRetry = 5 * time.Second
	// LongestParked is the longest time after which a parked job is tried again.
	LongestParked = 10 * time.Minute
	// ClockTolerance is the largest difference of the replicas' clocks at which leases are respected.
	ClockTolerance = time.Minute
)

// CountLimit bounds counts, because counting a hundred thousand tickets for each page would be expensive, and nobody needs
// the exact number.
const CountLimit = 1000

// Filter selects tickets; zero fields select all. The conditions about items must hold for one item together.
type Filter struct {
	Numbers   []int64 // one of these
	Text      string  // beginnings of words of the reason or of an id of the requester, an application or a resource, as package tokenize splits them
	Requester string
	Kinds     []Kind
	States    []State  // the ticket's state
	WaitsFor  *Waits   // an item waits for this person's decision or review
	DecidedBy string   // this person decided an item, also through a delegate
	VisibleTo *Visible // nil selects everything

	// Conditions about one item.
	ItemStates   []State
	Application  string    // catalog id
	Applications []string  // application names, one of these
	Resource     string    // catalog id
	Policy       string    // the object that contains it
	Target       *Target   // it extends or revokes this grant
	Package      string    // it is a part of this access package
	DueBy        time.Time // Item.Due is at or before this instant
	ExpiresBy    time.Time // it expires at or before this instant

	Oldest   bool   // ascending order, where it is descending otherwise
	ByUpdate bool   // order by the last change, then the number; by the number otherwise
	ByEnd    bool   // order by FirstEnd, the soonest first, then the number; needs ExpiresBy, and neither WaitsFor, Oldest nor After
	After    Cursor // continue after this ticket in the order; zero begins with the first
	Limit    int    // 0 means all

	OmitEvents   bool // Ticket.Events stays empty: for pages that do not show the events, which are most of what is read
	OmitComments bool // Ticket.Events has no EventComment: for callers that read many tickets and need only what the portal recorded
}

// Cursor is the position of a ticket in a list. UpdatedAt is used only in lists ordered by update.
type Cursor struct {
	UpdatedAt time.Time
	Number    int64
}

// Waits selects what a person may decide now: what waits for them or for the people whom they represent, except for items
// that they have decided and their own requests.
type Waits struct {
	Person    string
	StandsFor []string
}

// Visible restricts a list to what a person may see: their own requests, what they or the people whom they represent have
// to decide, what is about these applications and resources (resource names), and these tickets with statements.
type Visible struct {
	Person                  string
	StandsFor               []string
	Applications, Resources []string
	Statements              []int64
}

// DelegationFilter selects delegations; zero fields select all.
type DelegationFilter struct {
	From, To string
	ActiveAt time.Time
	Before   int64 // only ids below; 0 begins with the newest
	Limit    int   // 0 means all
}

// TicketChange is an event about a ticket that was created or changed, with its state and version afterwards.
type TicketChange struct {
	Number    int64
	State     State
	Version   int64
	UpdatedAt time.Time
}

// JobKind is the kind of a job's change of the host cluster.
type JobKind string

const (
	// JobApply writes the statement or the object of the item. For an item of KindRevoke it begins to revoke the
	// target.
	JobApply JobKind = "apply"
	// JobShorten writes the statement of the item again, with its earlier end.
	JobShorten JobKind = "shorten"
	// JobRemove removes the statement of the item.
	JobRemove JobKind = "remove"
)

// Job is an entry of the outbox.
type Job struct {
	ID         int64
	Ticket     int64
	Item       int
	Kind       JobKind
	Key        string // jobs of one key are done in the order of their ids
	Attempts   int    // number of leases, including the current one
	Worker     string
	LeaseUntil time.Time
}
