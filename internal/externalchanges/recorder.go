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

// Host is what the recorder asks of the host cluster.
type Host interface {
	// Ready tells whether every object was seen once.
	Ready() bool
	// ObjectRows are all that the cache has.
	ObjectRows(ctx context.Context) ([]Row, error)
	// ObjectNow is one as the API server has it now; nil: it does not exist, or is being deleted.
	ObjectNow(ctx context.Context, k Key) (*Seen, error)
	// Told are the changes of the webhook's Events, of the objects with these UIDs.
	Told(ctx context.Context, uids map[string]bool) ([]event.Change, error)
}

// Store keeps what the ledger knows of the objects. Several portals may use it at the same time.
type Store interface {
	// Rows are all objects; filled is false before the first Fill.
	Rows(ctx context.Context) (rows map[Key]Row, filled bool, err error)
	// Row of one object; nil: the ledger knows of none.
	Row(ctx context.Context, k Key) (*Row, error)
	// Fill begins with the objects that are there, without lines; a second one does nothing.
	Fill(ctx context.Context, rows []Row) error
	// Own notes a change that the portal made itself.
	Own(ctx context.Context, o Own) error
	// OwnOf are the portal's own changes of objects with these UIDs that were not recorded yet.
	OwnOf(ctx context.Context, uids map[string]bool) (map[Own]bool, error)
	// Record replaces what is known of an object and appends the lines in one transaction. It is false, and nothing is
	// changed, when another portal recorded something since before was read.
	Record(ctx context.Context, k Key, l Look) (bool, error)
}

// Recorder writes changes to the ledger. Every portal runs one.
type Recorder struct {
	Host  Host
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
	// Settle is how long a change waits for the webhook's Event, and for the note that it was the portal's own.
	Settle time.Duration
	// Every is the time between two looks at what waits, and Compare the one between two comparisons of everything.
	Every, Compare time.Duration

	compared time.Time // by Step alone

	mu      sync.Mutex
	started bool
	waiting map[Key]*notice
}

// DefaultSettle and the others are what the portal runs with.
const (
	DefaultSettle  = 5 * time.Second
	DefaultEvery   = time.Second
	DefaultCompare = 10 * time.Minute
	// patience is how many times Settle an object that goes on changing is waited for.
	patience = 6
)

// mostGone bounds the objects of one name that are remembered while its changes wait.
const mostGone = 50

// notice is an object that changed.
type notice struct {
	first, at  time.Time
	uid        string // empty: it is gone
	generation int64
	seen       map[string]Row // by UID
	count      int            // how often it was noticed
}

// Notice is called for every object whose UID, generation or existence changed.
func (r *Recorder) Notice(o Row, exists bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started { // else the comparison at the start finds it
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
	if _, known := n.seen[o.UID]; o.UID != "" && (known || len(n.seen) < mostGone) {
		n.seen[o.UID] = o
	}
}

// Run records until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	t := time.NewTicker(r.Every)
	defer t.Stop()
	for {
		if err := r.Step(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error("changes of the host cluster's objects are not in the ledger yet; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Step compares everything if it is time to, and records what has waited long enough. Only Run and tests call it.
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
	return r.look(ctx)
}

// compare finds what changed while nobody looked. The first comparison of a database only begins with what is there.
func (r *Recorder) compare(ctx context.Context) error {
	r.mu.Lock()
	r.started = true // what changes from here on is noticed
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

// look records what has waited long enough.
func (r *Recorder) look(ctx context.Context) error {
	var failed error
	for k, n := range r.due() {
		if err := r.one(ctx, k, n); err != nil {
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
		if now.Sub(n.at) >= r.Settle || now.Sub(n.first) >= patience*r.Settle {
			one := *n
			one.seen = maps.Clone(n.seen)
			out[k] = one
		}
	}
	return out
}

// done forgets a notice, unless there is a later one.
func (r *Recorder) done(k Key, n notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.waiting[k]; now != nil && now.count == n.count {
		delete(r.waiting, k)
	}
}

func (r *Recorder) one(ctx context.Context, k Key, n notice) error {
	before, err := r.Store.Row(ctx, k) // before the object, so that what another portal saw later is not undone
	if err != nil {
		return err
	}
	seen, err := r.Host.ObjectNow(ctx, k)
	if err != nil {
		return err
	}
	var now *Row
	if seen != nil {
		now = &seen.Row
	}
	late := r.Now().Sub(n.first) >= patience*r.Settle
	if moved(n, now) && !late { // what is there is newer than what has waited
		if now != nil {
			r.Notice(*now, true)
		} else {
			r.Notice(Row{Key: k}, false)
		}
		return nil
	}
	look := Look{Before: before, Seen: seen, At: r.Now(), Gone: slices.SortedFunc(maps.Values(n.seen), func(a, b Row) int { return strings.Compare(a.UID, b.UID) })}
	own, err := r.Store.OwnOf(ctx, look.UIDs())
	if err != nil {
		return err
	}
	if len(look.Lines(own)) > 0 {
		if look.Changes, err = r.Host.Told(ctx, look.UIDs()); err != nil {
			r.Log.Warn("who changed an object cannot be read", "kind", k.Kind, "name", k.Name, "error", err)
			if !late {
				return nil // it waits, and is tried again
			}
		}
	}
	ok, err := r.Store.Record(ctx, k, look)
	if err != nil {
		return err
	}
	if ok {
		r.done(k, n)
	}
	return nil
}

// moved tells whether what is there is not what was noticed.
func moved(n notice, now *Row) bool {
	if now == nil {
		return n.uid != ""
	}
	return now.UID != n.uid || now.Generation != n.generation
}
