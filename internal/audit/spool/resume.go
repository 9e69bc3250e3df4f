package spool

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Resume implements audit.Writer: it goes on where the newest batch left the source, in the spool or in the store. While
// the store is away the spool alone can tell, when it reaches back far enough. Batches under a lease do not count: when they
// are handed over, somebody else may have it.
func (s *Spool) Resume(ctx context.Context, source string) (audit.Resume, error) {
	s.mu.Lock()
	queue := append([]entry(nil), s.queue...)
	s.mu.Unlock()
	own, complete, err := s.resume(queue, source)
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

// resume reads the batches from the newest on, until the events of earlier ones cannot be delivered again.
func (s *Spool) resume(queue []entry, source string) (r audit.Resume, complete bool, err error) {
	var forget time.Time
	for i := len(queue) - 1; i >= 0; i-- {
		b, err := s.read(queue[i])
		if err != nil && !errors.Is(err, errDamaged) {
			return r, false, err // what it holds would be counted twice
		}
		if err != nil || b.Holder != "" {
			continue // a damaged one is a loss when it is handed over
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
