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
	// MaxFlows bounds the raw flows of one batch; 20,000.
	MaxFlows int
	// Sources is how many sources are followed. MaxKeys and MaxFlows are divided among them, so that none can use up the room
	// of the others; 1.
	Sources int
	// Retention of roll-ups and losses, 30 days, and that of raw flows, 3 days.
	Retention, FlowRetention time.Duration
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
	setDefault(&c.MaxFlows, 20_000)
	setDefault(&c.Sources, 1)
	setDefault(&c.Retention, 30*24*time.Hour)
	setDefault(&c.FlowRetention, 3*24*time.Hour)
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
	ports   *ports
	// holders are the leases under which sources are followed.
	holders map[string]string
	// waiting were taken out of current, in order; the first may have been tried, and has to be tried again unchanged.
	waiting []*audit.Batch

	flushing sync.Mutex

	errMu sync.Mutex
	err   error
}

// New returns an Aggregator; Run makes it write.
func New(cfg Config) (*Aggregator, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("configure roll-ups: %w", err)
	}
	return &Aggregator{cfg: cfg, metrics: newMetrics(cfg.Registerer), due: make(chan struct{}, 1), current: newPending(&cfg), ports: newPorts(cfg.Sources),
		holders: map[string]string{}}, nil
}

// Hold says under which lease the source is followed from now on. What was counted under another one keeps that.
func (a *Aggregator) Hold(source, holder string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.swap()
	a.holders[source] = holder
}

// Take counts one event. It never blocks on the store: when the source's part of the memory for waiting roll-ups is full, the
// event is recorded as lost instead.
func (a *Aggregator) Take(t *audit.Taken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.current
	before := len(p.rollups)
	if dropped := p.take(t, a.ports); dropped > 0 {
		a.metrics.dropped.WithLabelValues(t.Source).Add(float64(dropped))
		a.lose(audit.Loss{Cluster: t.Source, Reason: audit.LossStore, Count: dropped, From: t.Time, To: t.Time})
	}
	if t.Loss != nil {
		a.lose(*t.Loss)
	}
	if t.Flow != nil {
		a.keep(t)
	}
	if len(p.rollups) != before {
		a.metrics.pending.Set(float64(len(p.rollups)))
		if len(p.rollups) >= a.cfg.FlushKeys {
			a.flushSoon()
		}
	}
}

// keep puts a raw flow into the batch.
func (a *Aggregator) keep(t *audit.Taken) {
	if !a.current.flowRoom.take(t.Source) {
		a.metrics.rawDropped.WithLabelValues(t.Source).Inc()
		return
	}
	f := *t.Flow
	if r, ok := t.Tally.Kept.(*rows); ok && r.rows[0] != nil {
		f.Edge = r.rows[0].Edge // as it is counted
	}
	a.current.flows = append(a.current.flows, f)
	if 2*len(a.current.flows) >= a.cfg.MaxFlows {
		a.flushSoon()
	}
}

func (a *Aggregator) flushSoon() {
	select {
	case a.due <- struct{}{}:
	default: // a flush is due already
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
	if a.current.lose(l) {
		a.metrics.joined.WithLabelValues(l.Cluster).Inc()
	}
}

// Progress records how far a source was followed.
func (a *Aggregator) Progress(p audit.Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current.progress(p)
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
	// What was tried goes first: only when nothing waits, new batches are made.
	if err := a.drain(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	a.swap()
	a.mu.Unlock()
	return a.drain(ctx)
}

// drain stores what waits, in order.
func (a *Aggregator) drain(ctx context.Context) error {
	for {
		a.mu.Lock()
		var b *audit.Batch
		if len(a.waiting) > 0 {
			b = a.waiting[0]
		}
		a.mu.Unlock()
		if b == nil {
			return nil
		}
		err := a.cfg.Store.Append(ctx, b)
		if errors.Is(err, audit.ErrNotHolder) {
			a.metrics.foreign.Inc()
			a.cfg.Log.Warn("another collector follows a source of this batch and counts it; what was counted of it here is forgotten", "error", err)
			err = nil
		}
		a.report(err)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.waiting = a.waiting[1:]
		a.mu.Unlock()
	}
}

// swap makes batches of what is pending: one, or one for each lease. The caller holds mu.
func (a *Aggregator) swap() {
	p := a.current
	a.current = newPending(&a.cfg)
	a.metrics.pending.Set(0)
	add := func(holder string, only func(string) bool) {
		if b := p.batch(uuid.NewString(), only); !b.Empty() {
			b.Holder = holder
			a.waiting = append(a.waiting, b)
		}
	}
	add("", func(source string) bool { return a.holders[source] == "" })
	for source, holder := range a.holders {
		if holder != "" {
			add(holder, func(s string) bool { return s == source })
		}
	}
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
	now := a.cfg.Now()
	before := now.Add(-a.cfg.Retention)
	n, err := a.cfg.Store.Prune(ctx, audit.Retention{Rollups: before, Flows: now.Add(-a.cfg.FlowRetention), Losses: before})
	switch {
	case err != nil && ctx.Err() == nil:
		a.cfg.Log.Error("what is older than the retention was not removed; it is tried again", "error", err, "after", a.cfg.PruneEvery)
	case n > 0:
		a.cfg.Log.Info("removed what was old", "rows", n, "before", before)
	}
}
