// Package rollup aggregates counted connections in memory and writes them to the flow store: it adds them up by edge and minute,
// and writes batches that include the resume position of each source, so that a crash at any time neither loses nor repeats a
// count. It may import internal/audit, and neither sources of flows nor backends.
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

// Config configures an Aggregator. Zero values get the defaults that the fields name.
type Config struct {
	Store audit.Writer
	Log   *slog.Logger
	// Registerer registers the metrics. Default: a private registry.
	Registerer prometheus.Registerer
	// FlushEvery is the longest time that a count waits in memory. Default: 1 s.
	FlushEvery time.Duration
	// FlushKeys is the number of roll-ups at which a flush starts immediately. Default: 10,000.
	FlushKeys int
	// MaxKeys bounds the roll-ups in memory while the store cannot be written. Default: 200,000.
	MaxKeys int
	// MaxFlows bounds the raw flows of one batch. Default: 20,000.
	MaxFlows int
	// Sources is the number of followed sources. MaxKeys and MaxFlows are divided among them, so that no source can use the
	// memory of the others. Default: 1.
	Sources int
	// Retention applies to roll-ups and losses (default 365 days), FlowRetention to raw flows (default 3 days).
	Retention, FlowRetention time.Duration
	// PruneEvery is the interval between two removals of expired data. Default: 1 h.
	PruneEvery time.Duration
	// Now is the clock. Default: time.Now.
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
	setDefault(&c.Retention, 365*24*time.Hour)
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

// Aggregator counts connections in memory and writes them to the store in batches. It is safe for concurrent use.
type Aggregator struct {
	cfg            Config
	metrics        *metrics
	flushRequested chan struct{}

	mu sync.Mutex
	// generation is the generation of current.
	generation uint64
	current    *pending
	ports      *portTracker
	// holders holds the lease holder under which each source is followed.
	holders map[string]string
	// waiting holds batches that are not stored yet, in order. The first one may have been tried, and must then be retried
	// unchanged.
	waiting []*audit.Batch

	flushing sync.Mutex

	errMu sync.Mutex
	err   error
}

// New returns an Aggregator. Run writes its batches.
func New(cfg Config) (*Aggregator, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("configure roll-ups: %w", err)
	}
	holders := map[string]string{}
	return &Aggregator{
		cfg:            cfg,
		metrics:        newMetrics(cfg.Registerer),
		flushRequested: make(chan struct{}, 1),
		current:        newPending(&cfg, 0, holders),
		ports:          newPortTracker(cfg.Sources),
		holders:        holders,
	}, nil
}

// SetHolder sets the lease holder under which the source is followed from now on. Earlier counts keep the previous holder.
func (a *Aggregator) SetHolder(source, holder string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moveToWaiting()
	a.holders[source] = holder
}

// SetSources changes Config.Sources, from the next batch and the next minute on.
func (a *Aggregator) SetSources(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cfg.Sources = max(n, 1)
	a.ports.sources = a.cfg.Sources
}

// Add counts one event. It never blocks on the store: if the source's share of the memory for pending roll-ups is used up, the
// connections are recorded as lost instead.
func (a *Aggregator) Add(t *audit.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.current
	before := p.count()
	if dropped := p.add(t, a.ports); dropped > 0 {
		a.metrics.dropped.WithLabelValues(audit.ClusterOf(t.Source)).Add(float64(dropped))
		a.addLoss(audit.Loss{Cluster: audit.ClusterOf(t.Source), Reason: audit.LossStore, Count: dropped, From: t.Time, To: t.Time})
	}
	if t.Loss != nil {
		a.addLoss(*t.Loss)
	}
	if t.Flow != nil {
		a.addFlow(t)
	}
	if p.count() != before {
		a.metrics.pending.Set(float64(p.count()))
		if p.count() >= a.cfg.FlushKeys {
			a.requestFlush()
		}
	}
}

// maxFlowAge is how old a flow may be to be stored individually, however long such flows are kept. ClickHouse stores each day in files of
// its own, so flows on many days in each batch would slow down the storing of all.
const maxFlowAge = 7 * 24 * time.Hour

// addFlow adds the event's raw flow to the pending batch, or counts it as dropped.
func (a *Aggregator) addFlow(t *audit.Event) {
	if t.Flow.Time.Before(a.current.flowsSince) || !a.current.flowQuota.reserve(audit.ClusterOf(t.Source)) {
		a.metrics.rawDropped.WithLabelValues(audit.ClusterOf(t.Source)).Inc()
		return
	}
	f := *t.Flow
	if r, ok := t.EdgeGroup.SinkData.(*cachedRollups); ok && r.rows[0].list != noList {
		f.Edge = a.current.at(r.rows[0]).Edge // the edge in which it is counted, with folded ports
	}
	a.current.flows = append(a.current.flows, f)
	if 2*len(a.current.flows) >= a.cfg.MaxFlows {
		a.requestFlush()
	}
}

func (a *Aggregator) requestFlush() {
	select {
	case a.flushRequested <- struct{}{}:
	default: // a flush is requested already
	}
}

// AddLoss records evidence that is known to be missing.
func (a *Aggregator) AddLoss(l audit.Loss) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLoss(l)
}

func (a *Aggregator) addLoss(l audit.Loss) {
	a.metrics.lost.WithLabelValues(l.Cluster, string(l.Reason)).Add(float64(l.Count))
	if a.current.addLoss(l) {
		a.metrics.merged.WithLabelValues(l.Cluster).Inc()
	}
}

// Progress records the time span in which a source was followed, and its position.
func (a *Aggregator) Progress(p audit.Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current.progress(p)
}

// Err returns the error of the last attempt to store a batch; nil if it succeeded.
func (a *Aggregator) Err() error {
	a.errMu.Lock()
	defer a.errMu.Unlock()
	return a.err
}

// Run writes batches until the context ends, then writes the rest within ten seconds. The caller stops the sources first.
func (a *Aggregator) Run(ctx context.Context) error {
	flush := time.NewTicker(a.cfg.FlushEvery)
	defer flush.Stop()
	prune := time.NewTicker(a.cfg.PruneEvery)
	defer prune.Stop()
	a.prune(ctx)
	for {
		select {
		case <-ctx.Done():
			return a.finalFlush(context.WithoutCancel(ctx))
		case <-flush.C:
			_ = a.Flush(ctx) // already reported; retried at the next tick
		case <-a.flushRequested:
			// While the store fails, only the ticker triggers attempts.
			if a.Err() == nil {
				_ = a.Flush(ctx) // as above
			}
		case <-prune.C:
			a.prune(ctx)
		}
	}
}

// lastFlush bounds the duration of the final flush.
const lastFlush = 10 * time.Second

func (a *Aggregator) finalFlush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastFlush)
	defer cancel()
	if err := a.Flush(ctx); err != nil {
		return fmt.Errorf("the last flows were not stored; they are read again at the next start if their source still has them: %w", err)
	}
	return nil
}

// Flush stores everything that was counted before the call.
func (a *Aggregator) Flush(ctx context.Context) error {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	// Batches that were tried before are stored first, before new ones are made.
	if err := a.storeWaiting(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	a.moveToWaiting()
	a.mu.Unlock()
	return a.storeWaiting(ctx)
}

// storeWaiting stores the waiting batches in order, up to the first error.
func (a *Aggregator) storeWaiting(ctx context.Context) error {
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
			a.metrics.notHolder.Inc()
			a.cfg.Log.Warn("another collector follows the source of this batch; the batch is discarded", "error", err)
			err = nil
		}
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return err // the caller broke the attempt off, which says nothing about the store
		}
		a.report(err)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.waiting[0] = nil // the array may be kept
		a.waiting = a.waiting[1:]
		a.mu.Unlock()
	}
}

// moveToWaiting turns the pending counts into batches, one per lease holder, and appends them to waiting. The caller holds mu.
func (a *Aggregator) moveToWaiting() {
	p := a.current
	a.generation++
	a.current = newPending(&a.cfg, a.generation, a.holders)
	a.metrics.pending.Set(0)
	add := func(source, holder string) {
		if b := p.batch(uuid.NewString(), source); !b.Empty() {
			b.Holder = holder
			a.waiting = append(a.waiting, b)
		}
	}
	add("", "")
	for source, holder := range a.holders {
		if holder != "" {
			add(source, holder)
		}
	}
}

// report records the result of an attempt. It logs when the store starts to fail and when it works again, not each attempt in
// between.
func (a *Aggregator) report(err error) {
	a.errMu.Lock()
	defer a.errMu.Unlock()
	switch {
	case err != nil:
		a.metrics.failures.Inc()
		if a.err == nil {
			a.cfg.Log.Error("the flow store cannot be written; counting continues in memory up to a limit: free the disk or make the file writable",
				"error", err, "maxRollups", a.cfg.MaxKeys)
		}
	default:
		a.metrics.batches.Inc()
		if a.err != nil {
			a.cfg.Log.Info("the flow store can be written again")
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
		a.cfg.Log.Error("expired data was not removed; the removal is retried", "error", err, "after", a.cfg.PruneEvery)
	case n > 0:
		a.cfg.Log.Info("removed expired data", "rows", n, "before", before)
	}
}
