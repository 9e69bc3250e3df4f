// Package policies owns the policies that flows are decided with: it watches the kinds in the host cluster and keeps one
// immutable snapshot of them that any number of readers may use without a lock. It may import internal/audit,
// internal/policy and Kubernetes clients; it never writes to the host.
package policies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
)

// Config of a Source.
type Config struct {
	Host *rest.Config
	Log  *slog.Logger
	// MinBackoff and MaxBackoff bound the wait between two attempts to reach the host; 0.5 s and 15 s.
	MinBackoff, MaxBackoff time.Duration
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Source keeps the snapshot.
type Source struct {
	cfg      Config
	snapshot atomic.Pointer[policy.Snapshot]
	epochs   atomic.Pointer[[]audit.Epoch]
	ready    chan struct{} // closed with the first snapshot
	changed  chan struct{} // holds at most one token: something changed since the last rebuild
	realized *realized

	mu        sync.Mutex
	problem   string
	problemAt time.Time
}

// New returns a Source; Run makes it watch.
func New(cfg Config) (*Source, error) {
	if cfg.Host == nil || cfg.Log == nil {
		return nil, errors.New("configure the policy source: the host and the logger must be set")
	}
	if cfg.MinBackoff <= 0 {
		cfg.MinBackoff = 500 * time.Millisecond
	}
	if cfg.MaxBackoff < cfg.MinBackoff {
		cfg.MaxBackoff = max(15*time.Second, cfg.MinBackoff)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Source{cfg: cfg, ready: make(chan struct{}), changed: make(chan struct{}, 1), realized: newRealized(cfg.Now)}, nil
}

// Wait returns when there is a snapshot, or the context's error.
func (s *Source) Wait(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Epochs are the snapshots of the last while, newest first: the same slice until there is a new one, and none before Wait
// has returned. Flows that come late are decided with the one of their time.
func (s *Source) Epochs() []audit.Epoch {
	if p := s.epochs.Load(); p != nil {
		return *p
	}
	return nil
}

// Lags returns, by resource, the recent and current periods in which the member did not have what the policies require, or nil
// if there are none. Callers must not change it.
func (s *Source) Lags(member string) audit.Lags { return s.realized.of(member) }

// Snapshot returns the current snapshot, or nil before Wait has returned.
func (s *Source) Snapshot() *policy.Snapshot { return s.snapshot.Load() }

// Run watches until the context ends.
func (s *Source) Run(ctx context.Context) error {
	if err := s.preflight(ctx); err != nil {
		return nil //nolint:nilerr // the context ended, which is how a run ends
	}
	c, err := s.watch(ctx)
	if err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	if c.WaitForCacheSync(ctx) {
		s.keep(ctx, c)
	}
	if err := <-stopped; err != nil && ctx.Err() == nil {
		return fmt.Errorf("watch policies: %w", err)
	}
	return nil
}

func (s *Source) watch(ctx context.Context) (cache.Cache, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("watch policies: register kinds: %w", err)
	}
	c, err := cache.New(s.cfg.Host, cache.Options{
		Scheme:           scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
			if ctx.Err() == nil {
				s.setProblem(explain(err))
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch policies: %w", err)
	}
	for _, kind := range hostcluster.DecisionKinds() {
		informer, err := c.GetInformer(ctx, kind.Object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Plural, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.updated(nil, o) },
			UpdateFunc: s.updated,
			DeleteFunc: s.deleted,
		}); err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Plural, err)
		}
	}
	return c, nil
}

// deleted forgets what members have of a resource that is gone.
func (s *Source) deleted(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if p, ok := o.(*v1alpha1.ProtectedResource); ok {
		s.realized.forget(string(p.Spec.Resource))
	}
	s.touch()
}

// updated makes no new snapshot for what only changed a status: the adapter writes many of those. The status of a resource says
// what the members have of it.
func (s *Source) updated(before, after any) {
	if p, ok := after.(*v1alpha1.ProtectedResource); ok {
		was, _ := before.(*v1alpha1.ProtectedResource)
		s.realized.status(was, p, s.Snapshot())
	}
	b, okB := before.(client.Object)
	a, okA := after.(client.Object)
	if okA && okB && !hostcluster.AffectsDecisions(b, a) {
		return
	}
	s.touch()
}

func (s *Source) touch() {
	select {
	case s.changed <- struct{}{}:
	default: // a rebuild is due already
	}
}

// keep rebuilds the snapshot at once after a change; changes during a rebuild make one more.
func (s *Source) keep(ctx context.Context, r client.Reader) {
	for {
		if err := s.rebuild(ctx, r); err != nil {
			if ctx.Err() == nil {
				s.setProblem("read the policies from the cache: " + err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
	}
}

func (s *Source) rebuild(ctx context.Context, r client.Reader) error {
	in, err := hostcluster.Input(ctx, r)
	if err != nil {
		return err
	}
	now := s.cfg.Now()
	if present := s.Snapshot(); present != nil {
		next := present.Next(in)
		s.put(next, now)
		s.realized.changed(present, next, now)
		return nil
	}
	epochs := past(in, now)
	s.epochs.Store(&epochs)
	s.snapshot.Store(epochs[0].Evaluator.(*policy.Snapshot))
	s.clearProblem()
	s.cfg.Log.Info("policies were read; flows are decided with them", "policies", len(in.Policies), "resourceClasses", len(in.ResourceClasses),
		"subjectClasses", len(in.SubjectClasses), "resources", len(in.Resources), "externalWorkloads", len(in.Workloads))
	close(s.ready)
	return nil
}

// What is kept of the past: as many snapshots, which share their objects but not their indexes, and as long.
const (
	keptEpochs = 8
	keptFor    = 10 * time.Minute
)

// put makes the snapshot the present one.
func (s *Source) put(p *policy.Snapshot, now time.Time) {
	epochs := []audit.Epoch{{Evaluator: p, Since: now}}
	for i, e := range s.Epochs() {
		// The one before was in force until the one after it began.
		if ended := epochs[i].Since; len(epochs) == keptEpochs || now.Sub(ended) > keptFor {
			break
		}
		epochs = append(epochs, e)
	}
	s.epochs.Store(&epochs)
	s.snapshot.Store(p)
}
