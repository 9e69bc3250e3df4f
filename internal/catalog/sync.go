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

	"github.com/acp-io/acp/internal/message"
)

// RemovalLimit returns how many entities of each kind of one source a sync marks as gone without confirmation. More
// than a tenth and more than a few suggest that the source is broken, so a person has to decide. Entities are only
// marked, and return with their source.
func RemovalLimit(entities int) int { return max(entities/10, 5) }

// Start syncs all sources once. It returns an error if a source cannot be read while the catalog is empty, because then
// no one could log in.
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

// Run syncs the sources and loads what other replicas have changed, until the context ends.
func (s *Service) Run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	read := map[string]time.Time{}
	for _, src := range s.Sources {
		read[src.Name()] = s.Now() // Start has read it.
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("The catalog cannot be read; its last content stays in use", "error", err)
		}
		for _, src := range s.Sources {
			if p, ok := src.(Periodic); ok && s.Now().Sub(read[src.Name()]) < p.Every() {
				continue
			}
			read[src.Name()] = s.Now()
			_, _ = s.Sync(ctx, src.Name()) // Sync stores the error in the status and logs it.
		}
	}
}

// lastSync is the last sync of a source in this replica.
type lastSync struct {
	fingerprint string // of the source, if it supports fingerprints
	reading     [sha256.Size]byte
	revision    int64
	status      Status
	previewed   time.Time // when the pending preview was stored
	err         error
}

// heartbeat is the age at which a status without news is stored again.
const heartbeat = time.Minute

// Sync reads a configured source and applies its content. Removals beyond RemovalLimit wait as a preview.
func (s *Service) Sync(ctx context.Context, source string) (Status, error) {
	i := slices.IndexFunc(s.Sources, func(x Source) bool { return x.Name() == source })
	if i < 0 {
		return Status{}, refusal(ErrNotFound, message.CatalogSourceNotConfigured(source))
	}
	s.syncing.Lock()
	defer s.syncing.Unlock()
	last, known := s.last[source]
	unchanged := known && last.err == nil && last.revision == s.Revision() &&
		(last.status.PendingPreview == "" || s.Now().Sub(last.previewed) < PreviewLifetime/2)
	var fingerprint string
	if f, ok := s.Sources[i].(Fingerprinted); ok {
		var err error
		if fingerprint, err = f.Fingerprint(); err != nil {
			return s.failed(ctx, source, last, err)
		}
		if unchanged && fingerprint == last.fingerprint {
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
	if unchanged && last.reading == sum {
		last.fingerprint = fingerprint
		return s.nothingNew(ctx, last)
	}
	st, err := s.applyContent(ctx, source, r, sum)
	if err != nil {
		return s.failed(ctx, source, last, err)
	}
	if !known || last.err != nil || last.reading != sum {
		s.Log.Info("Catalog source synced", "source", source, "entities", st.Entities, "problems", st.ProblemsTotal, "waiting", st.PendingRemovals)
		for _, p := range st.Problems {
			s.Log.Warn("An entity is refused; its earlier content stays", "source", source, "problem", p)
		}
	}
	s.last[source] = lastSync{fingerprint: fingerprint, reading: sum, revision: s.Revision(), status: st, previewed: st.At}
	return st, s.storeStatus(ctx, st)
}

// nothingNew updates the time of the status.
func (s *Service) nothingNew(ctx context.Context, last lastSync) (Status, error) {
	var err error
	if now := s.Now(); now.Sub(last.status.At) >= heartbeat {
		last.status.At, last.status.SucceededAt = now, now
		err = s.storeStatus(ctx, last.status)
	}
	s.last[last.status.Source] = last
	return last.status, err
}

// applyContent applies the content of a source, and retries if the catalog was changed meanwhile.
func (s *Service) applyContent(ctx context.Context, source string, r SourceContent, sum [sha256.Size]byte) (Status, error) {
	const tries = 5
	for range tries {
		if err := s.Refresh(ctx); err != nil {
			return Status{}, err
		}
		v := s.view.Load()
		now := s.Now()
		d, w := v.sync(source, r, now)
		st := Status{Source: source, At: now, SucceededAt: now, Entities: len(r.Records), ProblemsTotal: len(d.Problems),
			Problems: d.Problems[:min(len(d.Problems), MaxProblems)]}
		if tooMany(v.state, source, d.Gone) {
			st.PendingRemovals = len(d.Gone)
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
		if st.PendingRemovals > 0 {
			// All replicas compute the same token.
			token := sha256.Sum256(fmt.Append(nil, source, " ", s.Revision(), " ", sum))
			st.PendingPreview = hex.EncodeToString(token[:])
			if _, err := s.preview(ctx, st.PendingPreview, "", source, r); err != nil {
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
		if n > RemovalLimit(live[kind]) || n == live[kind] && n > 1 {
			return true
		}
	}
	return false
}

func (s *Service) failed(ctx context.Context, source string, last lastSync, err error) (Status, error) {
	st := last.status
	st.Source, st.At, st.Error = source, s.Now(), err.Error()
	if last.err == nil || last.err.Error() != err.Error() {
		s.Log.Warn("A catalog source cannot be read; its earlier content stays", "source", source, "error", err)
	} else if st.At.Sub(last.status.At) < heartbeat {
		return last.status, err
	}
	s.last[source] = lastSync{status: st, err: err}
	return st, errors.Join(err, s.storeStatus(ctx, st))
}

func (s *Service) storeStatus(ctx context.Context, st Status) error {
	if err := s.Store.KeepStatus(ctx, st); err != nil {
		return fmt.Errorf("keep the status of catalog source %s: %w", st.Source, err)
	}
	return nil
}

// Statuses returns the status of all sources that were ever synced, sorted by name.
func (s *Service) Statuses(ctx context.Context) ([]Status, error) {
	out, err := s.Store.Statuses(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the status of the catalog's sources: %w", err)
	}
	return out, nil
}

func sumOf(r SourceContent) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(r); err != nil {
		return sum, fmt.Errorf("compare with the reading before: %w", err)
	}
	h.Sum(sum[:0])
	return sum, nil
}
