package externalchanges

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/externalchanges/event"
)

// Host is what the recorder reads from the host cluster.
type Host interface {
	// Ready reports whether every object was read once.
	Ready() bool
	// ObjectRows returns all objects in the cache.
	ObjectRows(ctx context.Context) ([]Row, error)
	// ObjectNow returns an object as the API server has it now, or nil if it does not exist or is being deleted.
	ObjectNow(ctx context.Context, k Key) (*LiveObject, error)
	// ReportedChanges returns the changes that the webhook's Events report about the objects with these UIDs.
	ReportedChanges(ctx context.Context, uids map[string]bool) ([]event.Change, error)
}

// Store persists what the ledger has recorded about the objects. Several portals may use it at the same time.
type Store interface {
	// Rows returns all recorded objects; filled is false before the first Fill.
	Rows(ctx context.Context) (rows map[Key]Row, filled bool, err error)
	// Row returns one recorded object, or nil.
	Row(ctx context.Context, k Key) (*Row, error)
	// Fill records the objects that exist at the beginning, without ledger entries. A second call does nothing.
	Fill(ctx context.Context, rows []Row) error
	// AddOwnChange records a change that the portal made itself.
	AddOwnChange(ctx context.Context, o OwnChange) error
	// OwnChanges returns the portal's own changes of objects with these UIDs that are not processed yet.
	OwnChanges(ctx context.Context, uids map[string]bool) (map[OwnChange]bool, error)
	// Record replaces what is recorded about an object and appends the entries to the ledger, in one transaction. It
	// returns false and changes nothing if another portal recorded something after Before was read.
	Record(ctx context.Context, k Key, o Observation) (bool, error)
}

// Recorder records changes in the ledger. Every portal runs one.
type Recorder struct {
	Host  Host
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
	// Settle is how long a change waits for the webhook's Event, and for the portal's record that it made the change
	// itself.
	Settle time.Duration
	// Every is the time between two checks of the waiting changes, and Compare the time between two comparisons of all
	// objects.
	Every, Compare time.Duration

	compared time.Time // used by Step only

	mu      sync.Mutex
	started bool
	waiting map[Key]*notice
}

// Defaults of the portal for the fields of Recorder.
const (
	// DefaultSettle is the default of Settle.
	DefaultSettle = 5 * time.Second
	// DefaultEvery is the default of Every.
	DefaultEvery = time.Second
	// DefaultCompare is the default of Compare.
	DefaultCompare = 10 * time.Minute
	// maxSettles is the number of Settle periods for which an object that keeps changing is delayed.
	maxSettles = 6
)

// maxIntermediate bounds the objects of one name that are kept while its changes wait.
const maxIntermediate = 50

// notice is a change that waits to be recorded.
type notice struct {
	first, at  time.Time
	uid        string // empty if the object does not exist
	generation int64
	seen       map[string]Row // by UID
	count      int            // how often the object changed
}

// Notice must be called for every object whose UID, generation or existence changed.
func (r *Recorder) Notice(o Row, exists bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started { // Earlier changes are found by the comparison at the start.
		r.put(o, exists)
	}
}

func (r *Recorder) put(o Row, exists bool) {
	if r.waiting == nil {
		r.waiting = map[Key]*notice{}
	}
	n := r.waiting[o.Key]
	if n == nil {
		n = &notice{first: r.Now(), seen: map[string]Row{}}
		r.waiting[o.Key] = n
	}
	n.at, n.uid, n.generation = r.Now(), "", 0
	n.count++
	if exists {
		n.uid, n.generation = o.UID, o.Generation
	}
	if _, known := n.seen[o.UID]; o.UID != "" && (known || len(n.seen) < maxIntermediate) {
		n.seen[o.UID] = o
	}
}

// Run records changes until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	t := time.NewTicker(r.Every)
	defer t.Stop()
	for {
		if err := r.Step(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error("Changes of the host cluster's objects could not be recorded in the ledger; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Step compares all objects if Compare has passed, and records the changes that have waited long enough. Only Run and
// tests call it.
func (r *Recorder) Step(ctx context.Context) error {
	if !r.Host.Ready() {
		return nil
	}
	if r.compared.IsZero() || r.Now().Sub(r.compared) >= r.Compare {
		if err := r.compare(ctx); err != nil {
			return fmt.Errorf("compare the host cluster's objects with the ledger: %w", err)
		}
		r.compared = r.Now()
	}
	return r.recordDue(ctx)
}

// compare finds changes that no watch reported. The first comparison of a database only records the objects that exist.
func (r *Recorder) compare(ctx context.Context) error {
	r.mu.Lock()
	r.started = true // Changes from now on are noticed.
	r.mu.Unlock()
	rows, filled, err := r.Store.Rows(ctx)
	if err != nil {
		return err
	}
	objects, err := r.Host.ObjectRows(ctx)
	if err != nil {
		return err
	}
	if !filled {
		return r.Store.Fill(ctx, objects)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range objects {
		if row, known := rows[o.Key]; (!known || row != o) && r.waiting[o.Key] == nil {
			r.put(o, true)
		}
		delete(rows, o.Key)
	}
	for k, row := range rows {
		if r.waiting[k] == nil {
			r.put(row, false)
		}
	}
	return nil
}

// recordDue records the changes that have waited long enough.
func (r *Recorder) recordDue(ctx context.Context) error {
	var failed error
	for k, n := range r.due() {
		if err := r.recordObject(ctx, k, n); err != nil {
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	return failed
}

func (r *Recorder) due() map[Key]notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[Key]notice{}
	for k, n := range r.waiting {
		now := r.Now()
		if now.Sub(n.at) >= r.Settle || now.Sub(n.first) >= maxSettles*r.Settle {
			copied := *n
			copied.seen = maps.Clone(n.seen)
			out[k] = copied
		}
	}
	return out
}

// done removes a notice, unless the object changed again.
func (r *Recorder) done(k Key, n notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.waiting[k]; now != nil && now.count == n.count {
		delete(r.waiting, k)
	}
}

// recordObject records the changes of one object, unless it has changed again since the notice.
func (r *Recorder) recordObject(ctx context.Context, k Key, n notice) error {
	before, err := r.Store.Row(ctx, k) // The row is read before the object, so that a later observation by another portal is not overwritten.
	if err != nil {
		return err
	}
	current, err := r.Host.ObjectNow(ctx, k)
	if err != nil {
		return err
	}
	var now *Row
	if current != nil {
		now = &current.Row
	}
	late := r.Now().Sub(n.first) >= maxSettles*r.Settle
	if moved(n, now) && !late { // The object has changed after the notice.
		if now != nil {
			r.Notice(*now, true)
		} else {
			r.Notice(Row{Key: k}, false)
		}
		return nil
	}
	observation := Observation{
		Before:       before,
		Current:      current,
		At:           r.Now(),
		Intermediate: slices.SortedFunc(maps.Values(n.seen), func(a, b Row) int { return strings.Compare(a.UID, b.UID) }),
	}
	own, err := r.Store.OwnChanges(ctx, observation.UIDs())
	if err != nil {
		return err
	}
	if len(observation.Lines(own)) > 0 {
		if observation.Changes, err = r.Host.ReportedChanges(ctx, observation.UIDs()); err != nil {
			r.Log.Warn("The Events that say who changed an object cannot be read", "kind", k.Kind, "name", k.Name, "error", err)
			if !late {
				return nil // The change waits and is tried again.
			}
		}
	}
	ok, err := r.Store.Record(ctx, k, observation)
	if err != nil {
		return err
	}
	if ok {
		r.done(k, n)
	}
	return nil
}

// moved reports whether the object differs from the notice.
func moved(n notice, now *Row) bool {
	if now == nil {
		return n.uid != ""
	}
	return now.UID != n.uid || now.Generation != n.generation
}
