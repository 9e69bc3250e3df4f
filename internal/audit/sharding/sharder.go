// Package sharding divides the members among several collectors by leases in the store: the collector that holds the lease of a
// source follows it, and stops before a lease that it could not renew expires. It imports internal/audit, and neither sources
// nor backends.
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
)

// Leases is the part of a store that is needed; see audit.Writer.
type Leases interface {
	Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error)
	Release(ctx context.Context, source, holder string) error
	Holder(ctx context.Context, source string) (string, error)
}

// Config of a Sharer. Zero values get the defaults that the fields name.
type Config struct {
	Leases Leases
	// Name of this collector, for people; every lease that it gets has a holder of its own, so that nothing which was
	// counted under an earlier one is stored under a later one.
	Name string
	Log  *slog.Logger
	// Registerer of the metrics; nil: they are kept to itself.
	Registerer prometheus.Registerer
	// TTL of a lease, 30 s. It is renewed after a third of it; another third is left to end what was begun.
	TTL time.Duration
}

// Sharder takes leases.
type Sharder struct {
	cfg  Config
	held atomic.Int64
	has  *prometheus.GaugeVec

	mu sync.Mutex
	// running counts the sources that Run was called for.
	running int
	// holding are those that it has, and how to give each up.
	holding map[string]func()
	// given are those that it gave up lately, and until when it does not ask for them.
	given map[string]time.Time
}

// New returns a Sharer.
func New(cfg Config) (*Sharder, error) {
	if cfg.Leases == nil || cfg.Name == "" || cfg.Log == nil {
		return nil, errors.New("configure sharing: leases, name and logger must be set")
	}
	if cfg.TTL <= 0 {
		cfg.TTL = 30 * time.Second
	}
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.NewRegistry()
	}
	s := &Sharder{cfg: cfg, holding: map[string]func(){}, given: map[string]time.Time{}, has: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_flow_source_held", Help: "1 while this collector has the lease on the member."}, []string{"cluster"})}
	cfg.Registerer.MustRegister(s.has)
	return s, nil
}

// Run calls follow whenever this collector has the lease on the source, with a context that ends before the lease does, and
// returns when ctx has ended and follow has returned.
func (s *Sharder) Run(ctx context.Context, source string, follow func(ctx context.Context, holder string)) {
	s.count(1)
	defer s.count(-1)
	for ctx.Err() == nil {
		if rest := s.rest(source); rest > 0 {
			sleep(ctx, rest)
			continue
		}
		holder := s.cfg.Name + "/" + uuid.NewString()
		asked := time.Now()
		ok, err := s.cfg.Leases.Lease(ctx, source, holder, s.cfg.TTL)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("the lease on a member could not be asked for; it is tried again", "member", source, "error", err)
		}
		if ok {
			s.hold(ctx, source, holder, asked, follow)
		}
		// Whoever has many waits longer, so that collectors which start together get as many each.
		pause := s.cfg.TTL/6 + time.Duration(s.held.Load())*s.cfg.TTL/20
		sleep(ctx, pause/2+rand.N(pause/2+1))
	}
}

// hold follows until the lease is lost or the context ends.
func (s *Sharder) hold(ctx context.Context, source, holder string, asked time.Time, follow func(context.Context, string)) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	s.held.Add(1)
	s.has.WithLabelValues(source).Set(1)
	s.hands(source, stop)
	defer func() {
		s.hands(source, nil)
		s.held.Add(-1)
		s.has.WithLabelValues(source).Set(0)
	}()
	done := make(chan struct{})
	go func() { defer close(done); follow(following, holder) }()
	for s.renew(following, source, holder, &asked) {
	}
	stop()
	<-done
	if ctx.Err() != nil || s.rest(source) > 0 {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.TTL/3)
		defer cancel()
		if err := s.cfg.Leases.Release(last, source, holder); err != nil {
			s.cfg.Log.Warn("the lease on a member was not given back; it runs out by itself", "member", source, "error", err)
		}
		return
	}
	s.cfg.Log.Warn("the lease on a member was lost; another collector may follow it", "member", source)
}

// renew waits and reports whether the lease still holds.
func (s *Sharder) renew(ctx context.Context, source, holder string, asked *time.Time) bool {
	if !sleep(ctx, s.cfg.TTL/6) {
		return false
	}
	within, cancel := context.WithDeadline(ctx, asked.Add(s.cfg.TTL*2/3))
	defer cancel()
	now := time.Now()
	ok, err := s.cfg.Leases.Lease(within, source, holder, s.cfg.TTL)
	switch {
	case err == nil && ok:
		*asked = now
		return true
	case err == nil:
		return false
	}
	return time.Since(*asked) < s.cfg.TTL*2/3 && ctx.Err() == nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
