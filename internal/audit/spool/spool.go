// Package spool owns the batches that the flow store did not take: it keeps them on disk, in order and within a bound, and
// hands them to the store when that is back. It is an audit.Writer in front of another one. It may import internal/audit,
// and knows no source of flows and no backend.
package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/audit"
)

// ErrFull means that the spool has no room for the batch, or its disk has none. The caller keeps it and tries again.
var ErrFull = errors.New("the spool is full")

// Config of a Spool. Zero values get the defaults that the fields name.
type Config struct {
	// Dir is the spool's own folder; it is created, and only its owner may read it.
	Dir string
	// MaxBytes bounds its files; 1 GiB.
	MaxBytes int64
	Store    audit.Writer
	Log      *slog.Logger
	// Registerer of the metrics; nil: they are kept to itself.
	Registerer prometheus.Registerer
	// Timeout is how long the store may take for a batch before it counts as away; 10 s. A batch that is handed over again has
	// twice the time each time, up to sixteen times: a store that is only slow must get it at last.
	Timeout time.Duration
	// MinWait and MaxWait bound the pause between two attempts to hand over; 1 s and 30 s.
	MinWait, MaxWait time.Duration
}

// Spool is safe for concurrent use.
type Spool struct {
	cfg     Config
	metrics *metrics
	arrived chan struct{} // holds a token when there may be something to hand over

	mu    sync.Mutex
	queue []entry // oldest first
	bytes int64
	next  uint64
	err   error // why the store did not take the last batch
}

// Open reads what an earlier run left.
func Open(cfg Config) (*Spool, error) {
	if cfg.Dir == "" || cfg.Store == nil || cfg.Log == nil {
		return nil, errors.New("configure the spool: folder, store and logger must be set")
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 1 << 30
	}
	for v, d := range map[*time.Duration]time.Duration{&cfg.Timeout: 10 * time.Second, &cfg.MinWait: time.Second, &cfg.MaxWait: 30 * time.Second} {
		if *v <= 0 {
			*v = d
		}
	}
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.NewRegistry()
	}
	s := &Spool{cfg: cfg, metrics: newMetrics(cfg.Registerer), arrived: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open the spool %s: %w", cfg.Dir, err)
	}
	if len(s.queue) > 0 {
		cfg.Log.Info("the spool holds batches that the store did not take; they are handed over first", "batches", len(s.queue), "bytes", s.bytes)
		s.arrived <- struct{}{}
	}
	return s, nil
}

// Err is why the store did not take the last batch; nil when it did.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Pending is how many batches wait for the store.
func (s *Spool) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Append implements audit.Writer: the batch is in the store or on this disk when it returns nil.
func (s *Spool) Append(ctx context.Context, b *audit.Batch) error {
	s.mu.Lock()
	waiting := len(s.queue)
	s.mu.Unlock()
	var cause error
	if waiting == 0 {
		if cause = s.hand(ctx, b, s.cfg.Timeout); cause == nil || errors.Is(cause, audit.ErrNotHolder) {
			return cause
		}
	}
	if err := s.put(b); err != nil {
		return errors.Join(cause, err)
	}
	select {
	case s.arrived <- struct{}{}:
	default: // it is known already
	}
	return nil
}

// hand gives a batch to the store.
func (s *Spool) hand(ctx context.Context, b *audit.Batch, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.cfg.Store.Append(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.err
	if s.err = err; errors.Is(err, audit.ErrNotHolder) {
		s.err = nil
	}
	switch {
	case s.err != nil && was == nil:
		s.cfg.Log.Error("the flow store does not take batches; they are kept in the spool", "error", err, "spool", s.cfg.Dir, "maxBytes", s.cfg.MaxBytes)
	case s.err == nil && was != nil:
		s.cfg.Log.Info("the flow store takes batches again")
	}
	return err
}

// Run hands over what is in the spool until the context ends. What is left then waits for the next start.
func (s *Spool) Run(ctx context.Context) {
	wait, timeout := s.cfg.MinWait, s.cfg.Timeout
	for {
		more, err := s.replay(ctx, timeout)
		switch {
		case err != nil:
			wait, timeout = min(2*wait, s.cfg.MaxWait), min(2*timeout, 16*s.cfg.Timeout)
		default:
			wait, timeout = s.cfg.MinWait, s.cfg.Timeout
		}
		if more && err == nil {
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		case <-s.arrivals(err):
		}
		t.Stop()
	}
}

// arrivals wakes the replay only while the store is there: else the pauses set the pace.
func (s *Spool) arrivals(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return s.arrived
}

// replay hands over the oldest batch.
func (s *Spool) replay(ctx context.Context, timeout time.Duration) (more bool, err error) {
	s.mu.Lock()
	if len(s.queue) == 0 {
		s.mu.Unlock()
		return false, nil
	}
	e := s.queue[0]
	s.mu.Unlock()
	b, err := s.read(e)
	switch {
	case errors.Is(err, errDamaged):
		s.cfg.Log.Error("a batch of the spool is damaged; what it held is recorded as lost", "file", e.path, "error", err)
		s.metrics.damaged.Inc()
		b = e.losses()
	case err != nil:
		return true, err
	}
	if err := s.hand(ctx, b, timeout); errors.Is(err, audit.ErrNotHolder) {
		s.metrics.foreign.Inc()
		s.cfg.Log.Warn("another collector follows a source of this batch and counts it; what was counted of it here is forgotten", "error", err)
	} else if err != nil {
		return true, err
	}
	return true, s.remove(e)
}

// Prune implements audit.Writer.
func (s *Spool) Prune(ctx context.Context, r audit.Retention) (int64, error) {
	return s.cfg.Store.Prune(ctx, r)
}

// Lease implements audit.Writer.
func (s *Spool) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	return s.cfg.Store.Lease(ctx, source, holder, ttl)
}

// Release implements audit.Writer.
func (s *Spool) Release(ctx context.Context, source, holder string) error {
	return s.cfg.Store.Release(ctx, source, holder)
}

// Holder implements audit.Writer.
func (s *Spool) Holder(ctx context.Context, source string) (string, error) {
	return s.cfg.Store.Holder(ctx, source)
}
