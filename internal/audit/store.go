package audit

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrUnavailable means that the store is not there or cannot be read now; the caller may go on without it and try again.
	ErrUnavailable = errors.New("flow store is not available")
	// ErrReadOnly means that the store can be read but not written (permissions, a read-only or full disk).
	ErrReadOnly = errors.New("flow store cannot be written")
	// ErrInvalidQuery means that the caller has to change the query; trying again does not help.
	ErrInvalidQuery = errors.New("invalid flow query")
	// ErrNotHolder means that another collector has the lease on a source of the batch; what was counted of it must be forgotten,
	// because the other one counts it.
	ErrNotHolder = errors.New("the source is followed by another collector")
)

// Position is how far a member's flows were taken in.
type Position struct {
	// Source is the member cluster.
	Source string
	// Time of the newest flow that was taken in. A source is resumed a little before it, see Seen.
	Time time.Time
}

// Seen identifies one event that was taken in, so that it is not counted again when its source is resumed.
type Seen struct {
	Source string
	Time   time.Time
	ID     uint64
}

// Watch is a span in which a source was followed, whether it had flows or not.
type Watch struct {
	Source   string
	From, To time.Time
}

// Batch is what one flush adds. Its parts belong together: a position is never stored without the counts up to it.
type Batch struct {
	// ID identifies the batch; a batch that is appended again with the same ID changes nothing.
	ID string
	// Holder, when set, has to have the lease on the source of every position, else nothing is stored and Append
	// returns ErrNotHolder.
	Holder    string
	Rollups   []Rollup
	Flows     []Flow
	Losses    []Loss
	Positions []Position
	// Watched may overlap or continue what was stored before: covered time counts once.
	Watched []Watch
	Seen    []Seen
	// ForgetSeen drops, for each source, the identities of events older than the time.
	ForgetSeen map[string]time.Time
}

// Empty reports whether there is nothing to store.
func (b *Batch) Empty() bool {
	return len(b.Rollups)+len(b.Flows)+len(b.Losses)+len(b.Positions)+len(b.Watched)+len(b.Seen) == 0
}

// Resume is where to go on with a source.
type Resume struct {
	// Position is the zero time when the source was never read.
	Position time.Time
	// Seen are the events that may be delivered again.
	Seen []Seen
}

// Retention says from when on things are kept; zero: everything. It is kept by whole days: what belongs to a UTC day that
// had not ended at the time stays.
type Retention struct {
	Rollups time.Time
	Flows   time.Time
	// Losses counts for losses and for the spans that were watched.
	Losses time.Time
}

// Writer is the collector's side of a store. There is one writer of a source at a time, see Lease.
type Writer interface {
	// Append stores the batch in full or not at all. The roll-ups are added to what is there for the same bucket and
	// edge. After an error the caller appends the same batch, unchanged, again: it is not known whether it was stored.
	// ErrReadOnly tells that the store refuses to be written, ErrUnavailable that it is not there.
	Append(ctx context.Context, b *Batch) error
	// Resume returns where the last stored batch left the source.
	Resume(ctx context.Context, source string) (Resume, error)
	// Prune deletes what is older than the retention, and says how many rows, as far as the store counts them. Positions
	// stay: they are what protects from counting twice.
	Prune(ctx context.Context, r Retention) (int64, error)
	// Lease gives the source to the holder for the ttl, and reports false when another holder has it. Whoever has it
	// renews it by calling again, well before the ttl is over.
	Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error)
	// Release gives the lease back; it does nothing when the holder does not have it.
	Release(ctx context.Context, source, holder string) error
	// Holder has the lease now; "": nobody has.
	Holder(ctx context.Context, source string) (string, error)
}

// Reader is the side of a store that views are made of. Every method returns ErrUnavailable (wrapped) while the store is
// missing or unreadable, and ErrInvalidQuery for a query that cannot be answered. An answer has no error but the
// context's own when the context ends.
type Reader interface {
	// Totals hands over every edge of the filter once, with its total in the window, ordered by the fields of Edge:
	// Resource, Subject, Cluster, SourceCluster, Source, Destination and then the others. An error of the callback ends
	// it and is returned. The callback must not use the store.
	Totals(ctx context.Context, f Filter, each func(Total) error) error
	// Connections returns a page of edges, each once with its total in the window, the last seen first.
	Connections(ctx context.Context, q ConnectionQuery) (ConnectionPage, error)
	// Series returns counts by step and decision, in that order; steps without any connection are left out.
	Series(ctx context.Context, q SeriesQuery) ([]Point, error)
	// Flows returns a page of raw flows, newest first.
	Flows(ctx context.Context, q FlowQuery) (FlowPage, error)
	// Denied counts denied and default-denied connections, by subject or by resource; edges without such a name are left out,
	// and names without any.
	Denied(ctx context.Context, q DeniedQuery) (map[string]int64, error)
	// LastFlow returns the time of the newest flow taken in, per member cluster.
	LastFlow(ctx context.Context) (map[string]time.Time, error)
	// Losses returns a page of what is known to be missing, the last ended first.
	Losses(ctx context.Context, q LossQuery) (LossPage, error)
	// Coverage returns how well each cluster was watched on each UTC day of the window, in that order; days without
	// anything are left out. A zero bound is none.
	Coverage(ctx context.Context, since, until time.Time) ([]Coverage, error)
}

// Store is a backend.
type Store interface {
	Writer
	Reader
	Close() error
}
