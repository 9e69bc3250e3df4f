// Package spool stores batches that the flow store did not accept: on disk, in order and up to a size limit, and replays them to
// the store when it is available again. A Spool is an audit.Writer in front of another one. The package may import
// internal/audit, and neither sources of flows nor backends.
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

// ErrFull is returned by Append if the batch would exceed the spool's size limit or cannot be written to its disk. The caller
// keeps the batch and tries again.
var ErrFull = errors.New("the spool is full")

// Config configures a Spool. Zero values get the defaults that the fields name.
type Config struct {
	// Dir is the directory of the spool's files. It is created if it is missing, and only its owner may read it.
	Dir string
	// MaxBytes bounds the total size of the files. Default: 1 GiB.
	MaxBytes int64
	Store    audit.Writer
	Log      *slog.Logger
	// Registerer registers the metrics. Default: a private registry.
	Registerer prometheus.Registerer
	// Timeout is how long the store may take for a batch before the attempt fails. Default: 10 s. The timeout of replay doubles
	// with each failure, up to sixteen times the value, so that a store that is merely slow eventually accepts the batch.
	Timeout time.Duration
	// MinWait and MaxWait bound the pause between two attempts to replay. Defaults: 1 s and 30 s.
	MinWait, MaxWait time.Duration
}

// Spool is an audit.Writer that keeps batches on disk while the store behind it fails. It is safe for concurrent use.
type Spool struct {
	cfg     Config
	metrics *metrics
	arrived chan struct{} // holds a token if there may be a batch to replay

	mu    sync.Mutex
	queue []entry // oldest first
	bytes int64
	next  uint64
	err   error // the store's last error; nil if it accepted the last batch
}

// Open creates the spool's directory if needed, and lists the batches that an earlier run left there.
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
		cfg.Log.Info("the spool contains batches of an earlier run; they are replayed to the store first", "batches", len(s.queue), "bytes", s.bytes)
		s.arrived <- struct{}{}
	}
	return s, nil
}

// Err returns the store's error for the last batch; nil if the store accepted it.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Pending returns the number of batches that wait for the store.
func (s *Spool) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Append implements audit.Writer. If it returns nil, the batch is in the store or on the spool's disk.
func (s *Spool) Append(ctx context.Context, b *audit.Batch) error {
	s.mu.Lock()
	waiting := len(s.queue)
	s.mu.Unlock()
	var cause error
	if waiting == 0 {
		if cause = s.appendToStore(ctx, b, s.cfg.Timeout); cause == nil || errors.Is(cause, audit.ErrNotHolder) {
			return cause
		}
	}
	if err := s.enqueue(b); err != nil {
		return errors.Join(cause, err)
	}
	select {
	case s.arrived <- struct{}{}:
	default: // a token is there already
	}
	return nil
}

// appendToStore passes a batch to the store, and logs when the store starts to fail and when it works again.
func (s *Spool) appendToStore(ctx context.Context, b *audit.Batch, timeout time.Duration) error {
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
		s.cfg.Log.Error("the flow store rejects batches; they are kept in the spool", "error", err, "spool", s.cfg.Dir, "maxBytes", s.cfg.MaxBytes)
	case s.err == nil && was != nil:
		s.cfg.Log.Info("the flow store accepts batches again")
	}
	return err
}

// Run replays the spool's batches to the store until the context ends. Remaining batches are replayed by the next run.
func (s *Spool) Run(ctx context.Context) {
	wait, timeout := s.cfg.MinWait, s.cfg.Timeout
	for {
		more, err := s.replayOldest(ctx, timeout)
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

// arrivals returns the channel that signals Run when a batch arrives; nil while the store fails, because then only the pauses
// between attempts count.
func (s *Spool) arrivals(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return s.arrived
}

// replayOldest passes the oldest batch to the store and removes it from the spool. It reports whether there was one.
func (s *Spool) replayOldest(ctx context.Context, timeout time.Duration) (more bool, err error) {
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
		s.cfg.Log.Error("a batch of the spool is damaged; its connections are recorded as lost", "file", e.path, "error", err)
		s.metrics.damaged.Inc()
		b = e.lossBatch()
	case err != nil:
		return true, err
	}
	if err := s.appendToStore(ctx, b, timeout); errors.Is(err, audit.ErrNotHolder) {
		s.metrics.notHolder.Inc()
		s.cfg.Log.Warn("another collector follows the source of this batch; the batch is discarded", "error", err)
	} else if err != nil {
		return true, err
	}
	return true, s.dequeue(e)
}

// Prune implements audit.Writer by calling the store.
func (s *Spool) Prune(ctx context.Context, r audit.Retention) (int64, error) {
	return s.cfg.Store.Prune(ctx, r)
}

// Lease implements audit.Writer by calling the store.
func (s *Spool) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	return s.cfg.Store.Lease(ctx, source, holder, ttl)
}

// Release implements audit.Writer by calling the store.
func (s *Spool) Release(ctx context.Context, source, holder string) error {
	return s.cfg.Store.Release(ctx, source, holder)
}

// Holder implements audit.Writer by calling the store.
func (s *Spool) Holder(ctx context.Context, source string) (string, error) {
	return s.cfg.Store.Holder(ctx, source)
}
