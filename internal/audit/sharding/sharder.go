// Package sharding distributes the members among several collectors by leases in the flow store. The collector that holds the
// lease of a source follows it, and stops before a lease that it could not renew expires. The package imports internal/audit, and
// neither sources of flows nor backends.
package sharding

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
)

// Leases is the part of audit.Writer that a Sharder needs.
type Leases interface {
	Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error)
	Release(ctx context.Context, source, holder string) error
	Holder(ctx context.Context, source string) (string, error)
}

// Config configures a Sharder. Zero values get the defaults that the fields name.
type Config struct {
	Leases Leases
	// Name identifies this collector in lease holders and logs. Each acquired lease gets a holder of its own, Name plus a UUID,
	// so that counts collected under an earlier lease are never stored under a later one.
	Name string
	Log  *slog.Logger
	// Registerer registers the metrics. Default: a private registry.
	Registerer prometheus.Registerer
	// TTL is the lifetime of a lease. Default: 30 s. A lease is renewed every TTL/6. If no renewal succeeds within 2/3 of the
	// TTL, following stops; the last third is left for batches under way.
	TTL time.Duration
}

// Sharder acquires, renews and releases leases for one collector.
type Sharder struct {
	cfg       Config
	held      atomic.Int64
	heldGauge *prometheus.GaugeVec

	mu sync.Mutex
	// running is the number of sources for which Run was called.
	running int
	// stops holds, for each followed source, the function that stops following it.
	stops map[string]func()
	// cooldownUntil holds, for each source that was given up lately, the time until which its lease is not acquired again.
	cooldownUntil map[string]time.Time
}

// New returns a Sharder. It returns an error if the leases, the name or the logger is missing.
func New(cfg Config) (*Sharder, error) {
	if cfg.Leases == nil || cfg.Name == "" || cfg.Log == nil {
		return nil, errors.New("configure sharding: leases, name and logger must be set")
	}
	if cfg.TTL <= 0 {
		cfg.TTL = 30 * time.Second
	}
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.NewRegistry()
	}
	s := &Sharder{
		cfg:           cfg,
		stops:         map[string]func(){},
		cooldownUntil: map[string]time.Time{},
		heldGauge: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "acp_flow_source_held", Help: "1 while this collector holds the lease of the member."},
			[]string{"cluster"},
		),
	}
	cfg.Registerer.MustRegister(s.heldGauge)
	return s, nil
}

// Run calls follow each time this collector acquires the lease of the source, with a context that ends before the lease does. It
// returns when ctx has ended and follow has returned.
func (s *Sharder) Run(ctx context.Context, source string, follow func(ctx context.Context, holder string)) {
	s.addRunning(1)
	defer s.addRunning(-1)
	for ctx.Err() == nil {
		if rest := s.cooldown(source); rest > 0 {
			backoff.Pause(ctx, clock.RealClock{}, rest)
			continue
		}
		holder := s.cfg.Name + "/" + uuid.NewString()
		requestedAt := time.Now()
		ok, err := s.cfg.Leases.Lease(ctx, source, holder, s.cfg.TTL)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("the lease of a member could not be requested; the request is repeated", "member", source, "error", err)
		}
		if ok {
			s.followWhileHeld(ctx, source, holder, requestedAt, follow)
		}
		// A collector with many members waits longer, so that collectors which start together get equally many.
		pause := s.cfg.TTL/6 + time.Duration(s.held.Load())*s.cfg.TTL/20
		backoff.Pause(ctx, clock.RealClock{}, pause/2+rand.N(pause/2+1))
	}
}

// followWhileHeld calls follow and renews the lease until the lease is lost or the context ends, and then waits for follow to
// return.
func (s *Sharder) followWhileHeld(ctx context.Context, source, holder string, requestedAt time.Time, follow func(context.Context, string)) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	s.held.Add(1)
	s.heldGauge.WithLabelValues(source).Set(1)
	s.setStop(source, stop)
	defer func() {
		s.setStop(source, nil)
		s.held.Add(-1)
		s.heldGauge.WithLabelValues(source).Set(0)
	}()
	done := make(chan struct{})
	go func() { defer close(done); follow(following, holder) }()
	for s.renew(following, source, holder, &requestedAt) {
	}
	stop()
	<-done
	if ctx.Err() != nil || s.cooldown(source) > 0 {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.TTL/3)
		defer cancel()
		if err := s.cfg.Leases.Release(last, source, holder); err != nil {
			s.cfg.Log.Warn("the lease of a member could not be released; it expires", "member", source, "error", err)
		}
		return
	}
	s.cfg.Log.Warn("the lease of a member was lost; another collector may follow it", "member", source)
}

// renew waits TTL/6, renews the lease, and reports whether following may continue. A failed request does not end it before 2/3 of
// the TTL.
func (s *Sharder) renew(ctx context.Context, source, holder string, requestedAt *time.Time) bool {
	if !backoff.Pause(ctx, clock.RealClock{}, s.cfg.TTL/6) {
		return false
	}
	within, cancel := context.WithDeadline(ctx, requestedAt.Add(s.cfg.TTL*2/3))
	defer cancel()
	now := time.Now()
	ok, err := s.cfg.Leases.Lease(within, source, holder, s.cfg.TTL)
	switch {
	case err == nil && ok:
		*requestedAt = now
		return true
	case err == nil:
		return false
	}
	return time.Since(*requestedAt) < s.cfg.TTL*2/3 && ctx.Err() == nil
}
