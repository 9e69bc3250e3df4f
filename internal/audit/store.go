package audit

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

var (
	// ErrUnavailable: the store is not there or cannot be read now; the caller may go on without it and try again.
	ErrUnavailable = errors.New("flow store is not available")
	// ErrReadOnly: the store can be read but not written (permissions, a read-only or full disk).
	ErrReadOnly = errors.New("flow store cannot be written")
	// ErrInvalidQuery: the caller has to change the query; trying again does not help.
	ErrInvalidQuery = errors.New("invalid flow query")
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

// Batch is what one flush adds. Its parts belong together: a position is never stored without the counts up to it.
type Batch struct {
	// ID identifies the batch; a batch that is appended again with the same ID changes nothing.
	ID        string
	Rollups   []Rollup
	Losses    []Loss
	Positions []Position
	Watched   []Watch
	Seen      []Seen
	// ForgetSeen drops, for each source, the identities of events older than the time.
	ForgetSeen map[string]time.Time
}

// Empty reports whether there is nothing to store.
func (b *Batch) Empty() bool {
	return len(b.Rollups)+len(b.Losses)+len(b.Positions)+len(b.Seen) == 0
}

// Resume is where to go on with a source.
type Resume struct {
	// Position is the zero time when the source was never read.
	Position time.Time
	// Seen are the events that may be delivered again.
	Seen []Seen
}

// Writer is the collector's side of a store. There is one writer of a source at a time.
type Writer interface {
	// Append stores the batch in full or not at all. The roll-ups are added to what is there for the same bucket and
	// edge. After an error the caller appends the same batch, unchanged, again: it is not known whether it was stored.
	// ErrReadOnly tells that the store refuses to be written.
	Append(ctx context.Context, b *Batch) error
	// Resume returns where the last stored batch left the source.
	Resume(ctx context.Context, source string) (Resume, error)
	// Prune deletes roll-ups of buckets, and losses that ended, before the time, and says how many.
	Prune(ctx context.Context, before time.Time) (int64, error)
}

// Reader is the side of a store that views are made of. Every method returns ErrUnavailable (wrapped) while the store is
// missing or unreadable, and ErrInvalidQuery for a query that cannot be answered.
type Reader interface {
	// Connections returns edges, each once with its total since the time of the query, newest first.
	Connections(ctx context.Context, q ConnectionQuery) ([]Connection, error)
	// Denied counts denied and default-denied connections, by subject or by resource; edges without such a name are left out.
	Denied(ctx context.Context, q DeniedQuery) (map[string]int64, error)
	// LastFlow returns the time of the newest flow taken in, per member cluster.
	LastFlow(ctx context.Context) (map[string]time.Time, error)
	// Losses returns what is known to be missing since the time, newest first.
	Losses(ctx context.Context, since time.Time) ([]Loss, error)
}

// Store is a backend.
type Store interface {
	Writer
	Reader
	Close() error
}

// MaxConnections limits one answer; a query without limit gets DefaultConnections.
const (
	MaxConnections     = 1000
	DefaultConnections = 100
)

// ConnectionQuery filters edges; an empty field does not filter. Buckets count whole: Since is rounded down to a minute.
type ConnectionQuery struct {
	Subject, Resource string
	Decisions         []policy.Word
	Since             time.Time
	Limit             int
}

// Connection is one edge with its totals.
type Connection struct {
	Cluster, SourceCluster string
	Subject, Resource      string
	// Source and Destination describe an end that has no name, see Edge.
	Source, Destination string
	Action              string
	Port                uint16
	Protocol            v1alpha1.Protocol
	Decision            policy.Word
	Verdict             Verdict
	Statement           policy.Ref
	Count               int64
	FirstSeen, LastSeen time.Time
}

// GroupBy says by which name denials are counted.
type GroupBy string

const (
	BySubject  GroupBy = "subject"
	ByResource GroupBy = "resource"
)

// DeniedQuery counts denials since a time. Subject and Resource filter when set.
type DeniedQuery struct {
	By                GroupBy
	Subject, Resource string
	Since             time.Time
}

// Limited returns the limit to use for the query.
func (q ConnectionQuery) Limited() int {
	switch {
	case q.Limit <= 0:
		return DefaultConnections
	case q.Limit > MaxConnections:
		return MaxConnections
	}
	return q.Limit
}
