package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limit of what a sync lets go by itself, of each kind of one source: more than a tenth and more than a few look like
// a source that is broken, so they wait for a person. What goes is only marked, and returns with its source.
func Limit(entities int) int { return max(entities/10, 5) }

// Start syncs all sources once. An error is a source that cannot be read while the catalog is empty: then nobody could
// do anything.
func (s *Service) Start(ctx context.Context) error {
	var errs []error
	for _, src := range s.Sources {
		if _, err := s.Sync(ctx, src.Name()); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil && s.Catalog().Empty() {
		return err
	}
	return nil
}

// Run syncs the sources and takes over what other replicas changed, until the context ends.
func (s *Service) Run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	read := map[string]time.Time{}
	for _, src := range s.Sources {
		read[src.Name()] = s.Now() // by Start
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the catalog cannot be read; what was read last stays", "error", err)
		}
		for _, src := range s.Sources {
			if p, ok := src.(Paced); ok && s.Now().Sub(read[src.Name()]) < p.Every() {
				continue
			}
			read[src.Name()] = s.Now()
			_, _ = s.Sync(ctx, src.Name()) // the status has it, and the log
		}
	}
}

// lastSync of a source in this replica.
type lastSync struct {
	fingerprint string // of the source, if it has one
	reading     [sha256.Size]byte
	revision    int64
	status      Status
	previewed   time.Time // when what waits was previewed
	err         error
}

// heartbeat is how old a status may get that says nothing new.
const heartbeat = time.Minute

// Sync reads a configured source and takes over what it says. What would go beyond Limit waits as a preview.
func (s *Service) Sync(ctx context.Context, source string) (Status, error) {
	i := slices.IndexFunc(s.Sources, func(x Source) bool { return x.Name() == source })
	if i < 0 {
		return Status{}, refusal(ErrNotFound, "No source %s is configured.", source)
	}
	s.syncing.Lock()
	defer s.syncing.Unlock()
	last, known := s.last[source]
	settled := known && last.err == nil && last.revision == s.Revision() && (last.status.Waiting == "" || s.Now().Sub(last.previewed) < PreviewFor/2)
	var fingerprint string
	if f, ok := s.Sources[i].(Fingerprinted); ok {
		var err error
		if fingerprint, err = f.Fingerprint(); err != nil {
			return s.failed(ctx, source, last, err)
		}
		if settled && fingerprint == last.fingerprint {
			return s.nothingNew(ctx, last)
		}
	}
	r, err := s.Sources[i].Read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return Status{}, err
		}
		return s.failed(ctx, source, last, err)
	}
	sum, err := sumOf(r)
	if err != nil {
		return Status{}, err
	}
	if settled && last.reading == sum {
		last.fingerprint = fingerprint
		return s.nothingNew(ctx, last)
	}
	st, err := s.take(ctx, source, r, sum)
	if err != nil {
		return s.failed(ctx, source, last, err)
	}
	if !known || last.err != nil || last.reading != sum {
		s.Log.Info("catalog source synced", "source", source, "entities", st.Entities, "problems", st.ProblemsTotal, "waiting", st.Going)
		for _, p := range st.Problems {
			s.Log.Warn("an entity cannot be taken; what was known of it stays", "source", source, "problem", p)
		}
	}
	s.last[source] = lastSync{fingerprint: fingerprint, reading: sum, revision: s.Revision(), status: st, previewed: st.At}
	return st, s.keep(ctx, st)
}

// nothingNew keeps the status fresh.
func (s *Service) nothingNew(ctx context.Context, last lastSync) (Status, error) {
	var err error
	if now := s.Now(); now.Sub(last.status.At) >= heartbeat {
		last.status.At, last.status.Good = now, now
		err = s.keep(ctx, last.status)
	}
	s.last[last.status.Source] = last
	return last.status, err
}

// take applies a reading, again when somebody else changed the catalog in between.
func (s *Service) take(ctx context.Context, source string, r Reading, sum [sha256.Size]byte) (Status, error) {
	const tries = 5
	for range tries {
		if err := s.Refresh(ctx); err != nil {
			return Status{}, err
		}
		v := s.view.Load()
		now := s.Now()
		d, w := v.sync(source, r, now)
		st := Status{Source: source, At: now, Good: now, Entities: len(r.Records), ProblemsTotal: len(d.Problems),
			Problems: d.Problems[:min(len(d.Problems), MaxProblems)]}
		if tooMany(v.state, source, d.Gone) {
			st.Going = len(d.Gone)
			d.Gone = nil
			w.Put = slices.DeleteFunc(w.Put, func(x Stored) bool { return !x.Gone.IsZero() })
		}
		if !d.Empty() {
			w.Ledger = v.lines("", d, w, now)
			if err := s.write(ctx, v.state, w); errors.Is(err, ErrChanged) {
				continue
			} else if err != nil {
				return Status{}, err
			}
		}
		if st.Going > 0 {
			// All replicas find the same, under the same token.
			token := sha256.Sum256(fmt.Append(nil, source, " ", s.Revision(), " ", sum))
			st.Waiting = hex.EncodeToString(token[:])
			if _, err := s.preview(ctx, st.Waiting, "", source, r); err != nil {
				return Status{}, err
			}
		}
		return st, nil
	}
	return Status{}, fmt.Errorf("sync catalog source %s: %w, %d times in a row", source, ErrChanged, tries)
}

func tooMany(s *state, source string, gone []Change) bool {
	live, going := map[Kind]int{}, map[Kind]int{}
	for ref, x := range s.stored {
		if x.Source == source && x.Gone.IsZero() {
			live[ref.Kind]++
		}
	}
	for _, c := range gone {
		going[c.Ref.Kind]++
	}
	for kind, n := range going {
		if n > Limit(live[kind]) || n == live[kind] && n > 1 {
			return true
		}
	}
	return false
}

func (s *Service) failed(ctx context.Context, source string, last lastSync, err error) (Status, error) {
	st := last.status
	st.Source, st.At, st.Error = source, s.Now(), err.Error()
	if last.err == nil || last.err.Error() != err.Error() {
		s.Log.Warn("a catalog source cannot be used; what is known of it stays", "source", source, "error", err)
	} else if st.At.Sub(last.status.At) < heartbeat {
		return last.status, err
	}
	s.last[source] = lastSync{status: st, err: err}
	return st, errors.Join(err, s.keep(ctx, st))
}

func (s *Service) keep(ctx context.Context, st Status) error {
	if err := s.Store.KeepStatus(ctx, st); err != nil {
		return fmt.Errorf("keep the status of catalog source %s: %w", st.Source, err)
	}
	return nil
}

// Statuses of all sources that were ever synced, sorted by name.
func (s *Service) Statuses(ctx context.Context) ([]Status, error) {
	out, err := s.Store.Statuses(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the status of the catalog's sources: %w", err)
	}
	return out, nil
}

func sumOf(r Reading) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(r); err != nil {
		return sum, fmt.Errorf("compare with the reading before: %w", err)
	}
	h.Sum(sum[:0])
	return sum, nil
}
