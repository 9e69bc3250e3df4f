package spool

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Resume implements audit.Writer. It returns the position of the newest batch with the source, in the spool or in the store, and
// the seen events of both. While the store is unavailable it answers from the spool alone, provided that the spool's batches
// cover the whole overlap in which events may be delivered again; otherwise it returns the store's error. Batches with a lease
// holder are ignored, because another collector may hold the lease by the time they are stored.
func (s *Spool) Resume(ctx context.Context, source string) (audit.Resume, error) {
	s.mu.Lock()
	queue := append([]entry(nil), s.queue...)
	s.mu.Unlock()
	own, complete, err := s.resumeFromSpool(queue, source)
	if err != nil {
		return audit.Resume{}, err
	}
	stored, err := s.cfg.Store.Resume(ctx, source)
	switch {
	case err != nil && complete:
		return own, nil
	case err != nil:
		return audit.Resume{}, err
	case own.Position.IsZero():
		return stored, nil
	}
	if stored.Position.After(own.Position) {
		own.Position = stored.Position
	}
	own.Seen = append(own.Seen, stored.Seen...)
	return own, nil
}

// resumeFromSpool reads batches from the newest to older ones, and stops at the first whose events cannot be delivered again. It
// reports complete if the spool reaches back that far.
func (s *Spool) resumeFromSpool(queue []entry, source string) (r audit.Resume, complete bool, err error) {
	var forget time.Time
	for i := len(queue) - 1; i >= 0; i-- {
		b, err := s.read(queue[i])
		if err != nil && !errors.Is(err, errDamaged) {
			return r, false, err // ignoring the batch would count its connections twice
		}
		if err != nil || b.Holder != "" {
			continue // a damaged batch is recorded as a loss when it is replayed
		}
		for _, p := range b.Positions {
			if p.Source != source {
				continue
			}
			if p.Time.After(r.Position) {
				r.Position = p.Time
			}
			complete = p.Time.Before(forget)
		}
		if complete {
			return r, true, nil
		}
		if f := b.ForgetSeen[source]; f.After(forget) {
			forget = f
		}
		for _, e := range b.Seen {
			if e.Source == source {
				r.Seen = append(r.Seen, e)
			}
		}
	}
	return r, false, nil
}
