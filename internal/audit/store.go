package audit

import (
	"context"
	"errors"
	"strings"
	"time"
)

var (
	// ErrUnavailable means that the store does not exist or cannot be read now. The caller may continue without it and retry.
	ErrUnavailable = errors.New("flow store is not available")
	// ErrReadOnly means that the store can be read but not written, because of permissions or of a read-only or full disk.
	ErrReadOnly = errors.New("flow store cannot be written")
	// ErrInvalidQuery means that the query is invalid. A retry does not help.
	ErrInvalidQuery = errors.New("invalid flow query")
	// ErrNotHolder means that another collector holds the lease of a source of the batch. The batch must be discarded, because
	// the other collector counts its connections.
	ErrNotHolder = errors.New("the source is followed by another collector")
)

// Position is the point up to which a member's flows were ingested.
type Position struct {
	// Source is the name of the member cluster.
	Source string
	// Time is the time of the newest ingested flow. A source is resumed a little before it, see SeenEvent.
	Time time.Time
}

// SeenEvent identifies an ingested event, so that it is not counted again when its source is resumed.
type SeenEvent struct {
	Source string
	Time   time.Time
	ID     uint64
}

// istioSuffix is the suffix of the name of a source that is the access log of a member's Istio. Names of clusters contain no slash.
const istioSuffix = "/istio"

// IstioSource returns the name of the source that is the access log of a member's Istio. The name does not depend on whether the member's
// Hubble is a source, too, so that the log continues at its position when Hubble is added or removed.
func IstioSource(cluster string) string { return cluster + istioSuffix }

// ClusterOf returns the member cluster of a source.
func ClusterOf(source string) string { return strings.TrimSuffix(source, istioSuffix) }

// WatchedSpan is a time span in which a source was followed, whether it had flows or not.
type WatchedSpan struct {
	Source   string
	From, To time.Time
}

// Batch is the data of one flush. It is stored atomically: a position is never stored without the counts up to it.
type Batch struct {
	// ID identifies the batch. Appending a batch again with the same ID changes nothing.
	ID string
	// Holder, if it is set, must hold the lease of the source of every position; otherwise nothing is stored and Append returns
	// ErrNotHolder.
	Holder    string
	Rollups   []Rollup
	Flows     []Flow
	Losses    []Loss
	Positions []Position
	// Watched may overlap or continue what was stored before. Overlapping time counts once.
	Watched []WatchedSpan
	Seen    []SeenEvent
	// ForgetSeen holds, for each source, the time before which identities of events are removed.
	ForgetSeen map[string]time.Time
}

// Empty reports whether the batch contains nothing to store.
func (b *Batch) Empty() bool {
	return len(b.Rollups)+len(b.Flows)+len(b.Losses)+len(b.Positions)+len(b.Watched)+len(b.Seen) == 0
}

// Resume describes where to resume a source.
type Resume struct {
	// Position is the zero time if the source was never read.
	Position time.Time
	// Seen are the events that may be delivered again.
	Seen []SeenEvent
}

// Retention holds the times before which data may be deleted; a zero time keeps everything. Whole UTC days are deleted: data of a
// day that had not ended at the time stays.
type Retention struct {
	Rollups time.Time
	Flows   time.Time
	// Losses applies to losses and to watched spans.
	Losses time.Time
}

// Writer is the interface of a store for collectors. A source has one writer at a time, see Lease.
type Writer interface {
	// Append stores the batch completely or not at all. Roll-ups are added to the stored ones of the same bucket and edge. After
	// an error it is unknown whether the batch was stored, so the caller appends the same batch again, unchanged. The error wraps
	// ErrReadOnly if the store cannot be written, and ErrUnavailable if it cannot be reached.
	Append(ctx context.Context, b *Batch) error
	// Resume returns the position and the seen events of the last stored batch of the source.
	Resume(ctx context.Context, source string) (Resume, error)
	// Prune deletes data that is older than the retention, and returns the number of deleted rows as far as the store counts
	// them. It never deletes positions, because they prevent double counting.
	Prune(ctx context.Context, r Retention) (int64, error)
	// Lease gives the lease of the source to the holder for the ttl, or extends it. It returns false if another holder has it.
	// The holder must call it again well before the ttl is over.
	Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error)
	// Release ends the lease. It does nothing if the holder does not have it.
	Release(ctx context.Context, source, holder string) error
	// Holder returns the current holder of the lease; "" if there is none.
	Holder(ctx context.Context, source string) (string, error)
}

// Reader is the interface of a store for views. Every method returns an error that wraps ErrUnavailable while the store is
// missing or unreadable, and ErrInvalidQuery for an invalid query. If the context ends, the error is that of the context.
type Reader interface {
	// Totals calls each once for every edge that matches the filter, with its total in the window, ordered by the fields of Edge:
	// Resource, Subject, Cluster, SourceCluster, Source, Destination and then the others. It stops at the first error of the
	// callback and returns it. The callback must not use the store.
	Totals(ctx context.Context, f Filter, each func(Total) error) error
	// Connections returns a page of edges, each with its total in the window, the most recently seen first.
	Connections(ctx context.Context, q ConnectionQuery) (ConnectionPage, error)
	// Series returns counts ordered by step and decision. Steps without connections are omitted.
	Series(ctx context.Context, q SeriesQuery) ([]Point, error)
	// Flows returns a page of raw flows, newest first.
	Flows(ctx context.Context, q FlowQuery) (FlowPage, error)
	// Denied returns the number of denied and default-denied connections by subject or by resource. Edges without such a name and
	// names without denials are omitted.
	Denied(ctx context.Context, q DeniedQuery) (map[string]int64, error)
	// LastFlow returns the time of the newest ingested flow by member cluster.
	LastFlow(ctx context.Context) (map[string]time.Time, error)
	// Losses returns a page of losses, the most recently ended first.
	Losses(ctx context.Context, q LossQuery) (LossPage, error)
	// Coverage returns the coverage of each cluster on each UTC day of the window, ordered by cluster and day. Days without data
	// are omitted. A zero bound means unbounded.
	Coverage(ctx context.Context, since, until time.Time) ([]Coverage, error)
}

// Store is a backend for flows with both interfaces.
type Store interface {
	Writer
	Reader
	Close() error
}
