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

// Host reads the host cluster for the recorder.
type Host interface {
	// Ready reports whether every object was read once.
	Ready() bool
	// ObjectRows returns all objects in the cache.
	ObjectRows(ctx context.Context) ([]Row, error)
	// ObjectNow returns an object as the API server has it now, or nil if it does not exist or is being deleted.
	ObjectNow(ctx context.Context, k Key) (*LiveObject, error)
	// CachedContent returns an object of the cache with its content, or nil if the cache does not have it.
	CachedContent(ctx context.Context, k Key) (*RecordedObject, error)
	// AwaySince returns since when the host cluster has not answered, or zero if it answers.
	AwaySince() time.Time
	// ReportedChanges returns the changes that the webhook's Events report about the objects with these UIDs.
	ReportedChanges(ctx context.Context, uids map[string]bool) ([]event.Change, error)
	// Instructions returns the instructions about waves of all objects in the cache.
	Instructions(ctx context.Context) ([]Instructed, error)
}

// Store persists what the ledger has recorded about the objects. Several portals may use it at the same time.
type Store interface {
	// Rows returns all recorded objects; filled is false before the first Fill.
	Rows(ctx context.Context) (rows map[Key]Row, filled bool, err error)
	// Object returns one recorded object with its content, or nil.
	Object(ctx context.Context, k Key) (*RecordedObject, error)
	// WithoutContent returns the recorded objects of which no content is recorded.
	WithoutContent(ctx context.Context) ([]Row, error)
	// AddContents records the contents of recorded objects. It changes nothing for objects that have a later generation.
	AddContents(ctx context.Context, objects []RecordedObject) error
	// Watched returns an instant before which no change of the host cluster is unknown, or zero, and SetWatched sets a later one.
	Watched(ctx context.Context) (time.Time, error)
	SetWatched(ctx context.Context, at time.Time) error
	// Fill records the objects that exist at the beginning, without ledger entries. A second call does nothing.
	Fill(ctx context.Context, rows []Row) error
	// AddOwnChange records a change that the portal made itself.
	AddOwnChange(ctx context.Context, o OwnChange) error
	// OwnChanges returns the portal's own changes of objects with these UIDs that are not processed yet.
	OwnChanges(ctx context.Context, uids map[string]bool) (map[OwnChange]bool, error)
	// Record replaces what is recorded about an object and appends the entries to the ledger, in one transaction. It
	// returns false and changes nothing if another portal recorded something after Before was read.
	Record(ctx context.Context, k Key, o Observation) (bool, error)
	// FillInstructions records the instructions that exist at the beginning, without ledger entries. A second call does nothing and
	// returns false.
	FillInstructions(ctx context.Context, all []Instructed) (first bool, err error)
	// AddOwnInstruction records an instruction that the portal is about to give.
	AddOwnInstruction(ctx context.Context, i Instructed) error
	// RecordInstructions records instructions and appends their entries to the ledger, in one transaction. It omits those that are
	// recorded already.
	RecordInstructions(ctx context.Context, lines []InstructionLine) error
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
	// ResourceID returns the catalog's ID of a resource by its name, or an empty string. It may be nil.
	ResourceID func(name string) string

	// Used by Step only: when all objects were compared, when the host cluster began to answer without interruption, and when watched was
	// set.
	compared, answering, advanced time.Time

	mu sync.Mutex
	// watched is an instant before which all changes were noticed or recorded, except those of the last watchDelay before it.
	watched time.Time
	started bool
	waiting map[Key]*notice
	// instructed are the instructions that wait to be recorded, in order, and instructedKeys their keys.
	instructed     []Instructed
	instructedKeys map[InstructionKey]bool
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
	// watchDelay bounds how late the watch reports a change while the host cluster answers: a broken connection is detected after 45
	// seconds, and made again after 30 seconds at most.
	watchDelay = 2 * time.Minute
	// advanceEvery is the time between two records that the portal watches the host cluster.
	advanceEvery = 30 * time.Second
)

// maxIntermediate bounds the objects of one name, and their contents, that are kept while its changes wait.
const maxIntermediate = 50

// contentsAtOnce bounds the contents that are recorded in one transaction.
const contentsAtOnce = 100

// notice is a change that waits to be recorded.
type notice struct {
	first, at  time.Time
	since      time.Time // the change was made later; zero if that is not known
	uid        string    // empty if the object does not exist
	generation int64
	seen       map[string]Row // by UID
	count      int            // how often the object changed
	// contents are the contents of the objects when the watch reported them.
	contents map[contentKey]func() Content
}

type contentKey struct {
	uid        string
	generation int64
}

// Notice must be called for every object whose UID, generation or existence changed. content returns the content of the object; it may be
// nil.
func (r *Recorder) Notice(o Row, exists bool, content func() Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started { // Earlier changes are found by the comparison at the start.
		r.put(o, exists, content, r.watched)
	}
}

// put adds a change that was made after an instant, except for the delay of the watch. The instant is zero if it is not known.
func (r *Recorder) put(o Row, exists bool, content func() Content, since time.Time) {
	if r.waiting == nil {
		r.waiting = map[Key]*notice{}
	}
	n := r.waiting[o.Key]
	if n == nil {
		n = &notice{first: r.Now(), seen: map[string]Row{}, contents: map[contentKey]func() Content{}}
		if !since.IsZero() {
			n.since = since.Add(-watchDelay)
		}
		r.waiting[o.Key] = n
	}
	if content != nil && len(n.contents) < maxIntermediate {
		n.contents[contentKey{o.UID, o.Generation}] = content
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
		if err := r.compareInstructions(ctx); err != nil {
			return fmt.Errorf("compare the instructions about waves with the ledger: %w", err)
		}
		if err := r.addContents(ctx); err != nil {
			return fmt.Errorf("record the contents of the host cluster's objects: %w", err)
		}
		r.compared = r.Now()
	}
	return errors.Join(r.recordInstructions(ctx), r.recordDue(ctx), r.advance(ctx))
}

// advance records until when the portal has noticed all changes, so that the portal that runs next can say when those were made that it
// finds. After an interruption of the host cluster's answers, the watch may be late.
func (r *Recorder) advance(ctx context.Context) error {
	now := r.Now()
	if !r.Host.AwaySince().IsZero() {
		r.answering = time.Time{}
		return nil
	}
	if r.answering.IsZero() {
		r.answering = now
	}
	if now.Sub(r.answering) < watchDelay || now.Sub(r.advanced) < advanceEvery {
		return nil
	}
	r.mu.Lock()
	r.watched = now
	at, known := now, true
	for _, n := range r.waiting { // a change that is not recorded is known to this portal only
		known = known && !n.since.IsZero()
		if before := n.since.Add(watchDelay); before.Before(at) {
			at = before
		}
	}
	r.mu.Unlock()
	if !known {
		return nil
	}
	if err := r.Store.SetWatched(ctx, at); err != nil { // It keeps a later instant.
		return fmt.Errorf("record that the host cluster is watched: %w", err)
	}
	r.advanced = now
	return nil
}

// addContents records the contents of objects that an earlier version recorded without them, or that exist at the beginning.
func (r *Recorder) addContents(ctx context.Context) error {
	rows, err := r.Store.WithoutContent(ctx)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(rows, contentsAtOnce) {
		var list []RecordedObject
		for _, row := range chunk {
			o, err := r.Host.CachedContent(ctx, row.Key)
			if err != nil {
				return err
			}
			if o != nil && o.Row == row { // otherwise its change is about to be recorded
				list = append(list, *o)
			}
		}
		if err := r.Store.AddContents(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// compare finds changes that no watch reported. The first comparison of a database only records the objects that exist.
func (r *Recorder) compare(ctx context.Context) error {
	since := r.compared
	if since.IsZero() {
		var err error
		if since, err = r.Store.Watched(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	if !r.started {
		r.started, r.watched = true, r.Now() // Changes from now on are noticed.
		r.answering = r.watched.Add(-watchDelay)
	} else if r.watched.Before(since) {
		since = r.watched
	}
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
	found := func(o Row, exists bool) {
		switch n := r.waiting[o.Key]; {
		case n == nil:
			r.put(o, exists, nil, since)
		case r.compared.IsZero(): // It has changed since the start, too.
			n.lower(since)
		}
	}
	for _, o := range objects {
		if row, known := rows[o.Key]; !known || row != o {
			found(o, true)
		}
		delete(rows, o.Key)
	}
	for _, row := range rows {
		found(row, false)
	}
	return nil
}

// lower sets an earlier instant since which the change may have been made; zero if it is not known.
func (n *notice) lower(since time.Time) {
	if !since.IsZero() {
		since = since.Add(-watchDelay)
	}
	if since.Before(n.since) {
		n.since = since
	}
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
			copied.seen, copied.contents = maps.Clone(n.seen), maps.Clone(n.contents)
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
	before, err := r.Store.Object(ctx, k) // It is read before the object, so that a later observation by another portal is not overwritten.
	if err != nil {
		return err
	}
	read := r.Now()
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
			r.Notice(*now, true, func() Content { return current.Content })
		} else {
			r.Notice(Row{Key: k}, false, nil)
		}
		return nil
	}
	observation := Observation{
		Before:       before,
		Current:      current,
		Since:        n.since,
		ReadAt:       read,
		At:           r.Now(),
		Intermediate: slices.SortedFunc(maps.Values(n.seen), func(a, b Row) int { return strings.Compare(a.UID, b.UID) }),
		Contents:     map[string]map[int64]Content{},
	}
	if before != nil && before.At.After(n.since) {
		observation.Since = before.At
	}
	for key, content := range n.contents {
		if observation.Contents[key.uid] == nil {
			observation.Contents[key.uid] = map[int64]Content{}
		}
		observation.Contents[key.uid][key.generation] = content()
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
