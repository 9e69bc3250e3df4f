// Package rollup owns the way of counted connections from memory to the flow store: it adds them up by edge and minute and
// writes batches that carry the resume position of every source, so that a crash at any instruction neither loses nor
// repeats a count. It may import internal/audit, and knows no source of flows and no backend.
package rollup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/audit"
)

// Config of an Aggregator. Zero values get the defaults that the fields name.
type Config struct {
	Store audit.Writer
	Log   *slog.Logger
	// Registerer of the metrics; nil: they are kept to itself.
	Registerer prometheus.Registerer
	// FlushEvery is the longest time that a count waits in memory; 1 s.
	FlushEvery time.Duration
	// FlushKeys is the number of roll-ups that makes a flush due at once; 10,000.
	FlushKeys int
	// MaxKeys bounds the roll-ups that wait while the store cannot be written; 200,000.
	MaxKeys int
	// Retention of roll-ups and losses; 30 days.
	Retention time.Duration
	// PruneEvery is the time between two removals of what is older; 1 h.
	PruneEvery time.Duration
	// Now is the clock; time.Now.
	Now func() time.Time
}

func (c *Config) complete() error {
	if c.Store == nil || c.Log == nil {
		return errors.New("an aggregator needs a store and a logger")
	}
	if c.Registerer == nil {
		c.Registerer = prometheus.NewRegistry()
	}
	setDefault(&c.FlushEvery, time.Second)
	setDefault(&c.FlushKeys, 10_000)
	setDefault(&c.MaxKeys, 200_000)
	setDefault(&c.Retention, 30*24*time.Hour)
	setDefault(&c.PruneEvery, time.Hour)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxKeys < c.FlushKeys {
		return fmt.Errorf("MaxKeys (%d) must not be less than FlushKeys (%d)", c.MaxKeys, c.FlushKeys)
	}
	return nil
}

func setDefault[T time.Duration | int](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Aggregator counts in memory and writes to the store. Its methods are safe for concurrent use.
type Aggregator struct {
	cfg     Config
	metrics *metrics
	due     chan struct{}

	mu      sync.Mutex
	current *pending

	flushing sync.Mutex
	inFlight *audit.Batch // was tried, and has to be tried again unchanged

	errMu sync.Mutex
	err   error
}

// New returns an Aggregator; Run makes it write.
func New(cfg Config) (*Aggregator, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("configure roll-ups: %w", err)
	}
	return &Aggregator{cfg: cfg, metrics: newMetrics(cfg.Registerer), due: make(chan struct{}, 1), current: newPending()}, nil
}

// Take counts one event. It never blocks on the store: when the memory for waiting roll-ups is full, the event is
// recorded as lost instead.
func (a *Aggregator) Take(t audit.Taken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	dropped := a.current.take(t, a.cfg.MaxKeys)
	if dropped > 0 {
		a.metrics.dropped.WithLabelValues(t.Source).Add(float64(dropped))
		a.lose(audit.Loss{Cluster: t.Source, Reason: audit.LossStore, Count: dropped, From: t.Time, To: t.Time})
	}
	a.metrics.pending.Set(float64(len(a.current.rollups)))
	if len(a.current.rollups) >= a.cfg.FlushKeys {
		select {
		case a.due <- struct{}{}:
		default: // a flush is due already
		}
	}
}

// Lose records what is known to be missing.
func (a *Aggregator) Lose(l audit.Loss) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lose(l)
}

func (a *Aggregator) lose(l audit.Loss) {
	a.metrics.lost.WithLabelValues(l.Cluster, string(l.Reason)).Add(float64(l.Count))
	a.current.lose(l)
}

// Err is why the last attempt to store failed; nil when it did not.
func (a *Aggregator) Err() error {
	a.errMu.Lock()
	defer a.errMu.Unlock()
	return a.err
}

// Run writes batches until the context ends, and what is left then. The caller stops the sources first.
func (a *Aggregator) Run(ctx context.Context) error {
	flush := time.NewTicker(a.cfg.FlushEvery)
	defer flush.Stop()
	prune := time.NewTicker(a.cfg.PruneEvery)
	defer prune.Stop()
	a.prune(ctx)
	for {
		select {
		case <-ctx.Done():
			return a.last(context.WithoutCancel(ctx))
		case <-flush.C:
			_ = a.Flush(ctx) // reported where it happened, tried again at the next tick
		case <-a.due:
			// While the store fails, the ticker alone sets the pace.
			if a.Err() == nil {
				_ = a.Flush(ctx) // as above
			}
		case <-prune.C:
			a.prune(ctx)
		}
	}
}

// lastFlush bounds the end of the program.
const lastFlush = 10 * time.Second

func (a *Aggregator) last(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastFlush)
	defer cancel()
	if err := a.Flush(ctx); err != nil {
		return fmt.Errorf("the last flows were not stored, they are read again at the next start as far as their source still holds them: %w", err)
	}
	return nil
}

// Flush stores everything that was counted before the call.
func (a *Aggregator) Flush(ctx context.Context) error {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	if a.inFlight != nil {
		if err := a.append(ctx); err != nil {
			return err
		}
	}
	a.inFlight = a.swap()
	if a.inFlight.Empty() {
		a.inFlight = nil
		return nil
	}
	return a.append(ctx)
}

func (a *Aggregator) append(ctx context.Context) error {
	err := a.cfg.Store.Append(ctx, a.inFlight)
	a.report(err)
	if err != nil {
		return err
	}
	a.inFlight = nil
	return nil
}

func (a *Aggregator) swap() *audit.Batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.current
	a.current = newPending()
	a.metrics.pending.Set(0)
	return p.batch(uuid.NewString())
}

// report logs when the store starts to fail and when it works again, not every attempt in between.
func (a *Aggregator) report(err error) {
	a.errMu.Lock()
	defer a.errMu.Unlock()
	switch {
	case err != nil:
		a.metrics.failures.Inc()
		if a.err == nil {
			a.cfg.Log.Error("the flow store cannot be written; counting goes on in memory, bounded: free the disk or make the file writable",
				"error", err, "maxRollups", a.cfg.MaxKeys)
		}
	default:
		a.metrics.batches.Inc()
		if a.err != nil {
			a.cfg.Log.Info("the flow store is written again")
		}
	}
	a.err = err
}

func (a *Aggregator) prune(ctx context.Context) {
	before := a.cfg.Now().Add(-a.cfg.Retention)
	n, err := a.cfg.Store.Prune(ctx, audit.Retention{Rollups: before, Flows: before, Losses: before})
	switch {
	case err != nil && ctx.Err() == nil:
		a.cfg.Log.Error("old roll-ups were not removed; it is tried again", "error", err, "after", a.cfg.PruneEvery)
	case n > 0:
		a.cfg.Log.Info("removed what was old", "rows", n, "before", before)
	}
}
