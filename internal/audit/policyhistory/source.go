// Package policyhistory provides the policies by which flows are decided. It watches ACP's kinds in the host cluster, keeps
// immutable snapshots of the policies of the last minutes, and records in which periods a member did not have what they require.
// It may import internal/audit, internal/policy and Kubernetes clients; it never writes to the host.
package policyhistory

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

// Config configures a Source.
type Config struct {
	Host *rest.Config
	Log  *slog.Logger
	// MinBackoff and MaxBackoff bound the delay between two attempts to reach the host. Defaults: 0.5 s and 15 s.
	MinBackoff, MaxBackoff time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Source provides the snapshots.
type Source struct {
	cfg      Config
	snapshot atomic.Pointer[policy.Snapshot]
	epochs   atomic.Pointer[[]audit.Epoch]
	ready    chan struct{} // closed with the first snapshot
	changed  chan struct{} // holds at most one token: something changed since the last rebuild
	lags     *lagTracker

	mu        sync.Mutex
	problem   string
	problemAt time.Time
}

// New returns a Source, which watches after Run is called.
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
	return &Source{cfg: cfg, ready: make(chan struct{}), changed: make(chan struct{}, 1), lags: newLagTracker(cfg.Now)}, nil
}

// Wait waits until there is a snapshot. It returns an error only when the context ends.
func (s *Source) Wait(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Epochs returns the snapshots of the last keptFor, newest first, by which late flows are decided. It returns the same slice until
// there is a new snapshot, and none before Wait has returned.
func (s *Source) Epochs() []audit.Epoch {
	if p := s.epochs.Load(); p != nil {
		return *p
	}
	return nil
}

// Lags returns, by resource, the recent and current periods in which the member did not have what the policies require, or nil
// if there are none. Callers must not change it.
func (s *Source) Lags(member string) audit.Lags { return s.lags.lagsOf(member) }

// Snapshot returns the current snapshot, or nil before Wait has returned.
func (s *Source) Snapshot() *policy.Snapshot { return s.snapshot.Load() }

// Run watches until the context ends.
func (s *Source) Run(ctx context.Context) error {
	if err := s.preflight(ctx); err != nil {
		return nil //nolint:nilerr // the end of the context is not an error
	}
	c, err := s.watch(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // as above
		}
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	if c.WaitForCacheSync(ctx) {
		s.rebuildOnChange(ctx, c)
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
	strip, share := cache.TransformStripManagedFields(), hostcluster.ShareMemberLists()
	c, err := cache.New(s.cfg.Host, cache.Options{
		Scheme: scheme,
		DefaultTransform: func(o any) (any, error) {
			o, err := strip(o)
			if err != nil {
				return nil, err
			}
			return share(o)
		},
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

// deleted removes the lags of a deleted resource.
func (s *Source) deleted(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if p, ok := o.(*v1alpha1.ProtectedResource); ok {
		s.lags.forgetResource(string(p.Spec.Resource))
	}
	s.touch()
}

// updated processes a changed object. A change of only a status, of which there are many, causes no new snapshot; the status of a
// resource is passed to the lag tracker.
func (s *Source) updated(before, after any) {
	if p, ok := after.(*v1alpha1.ProtectedResource); ok {
		was, _ := before.(*v1alpha1.ProtectedResource)
		s.lags.observe(was, p, s.Snapshot())
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
	default: // a rebuild is pending already
	}
}

// rebuildOnChange rebuilds the snapshot after each change. Changes during a rebuild cause one more.
func (s *Source) rebuildOnChange(ctx context.Context, r client.Reader) {
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
		s.lags.recordChange(present, next, now)
		return nil
	}
	epochs := epochsBeforeStart(in, now)
	s.epochs.Store(&epochs)
	s.snapshot.Store(epochs[0].Evaluator.(*policy.Snapshot))
	s.clearProblem()
	s.cfg.Log.Info("policies were read; flows are decided with them", "policies", len(in.Policies), "resourceClasses", len(in.ResourceClasses),
		"subjectClasses", len(in.SubjectClasses), "resources", len(in.Resources), "externalWorkloads", len(in.Workloads))
	close(s.ready)
	return nil
}

// Limits of the kept snapshots, which share their objects but not their indexes.
const (
	keptEpochs = 8
	keptFor    = 10 * time.Minute
)

// put makes a snapshot the current one.
func (s *Source) put(p *policy.Snapshot, now time.Time) {
	epochs := []audit.Epoch{{Evaluator: p, Since: now}}
	for i, e := range s.Epochs() {
		// A snapshot was in force until the next one began.
		if ended := epochs[i].Since; len(epochs) == keptEpochs || now.Sub(ended) > keptFor {
			break
		}
		epochs = append(epochs, e)
	}
	s.epochs.Store(&epochs)
	s.snapshot.Store(p)
}
