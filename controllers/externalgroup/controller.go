package externalgroup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/controllers/feed"
	"github.com/acp-io/acp/controllers/index"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Members is what is known of the groups in the member clusters.
type Members interface {
	Registry() (bool, error)
	Clusters() []federation.Cluster
	Observe(cluster, object string) federation.Observation
	Absent(ctx context.Context, cluster, object string) (bool, error)
}

// Federated are the Federated objects of groups on the host.
type Federated interface {
	State() (bool, error)
	Get(name string) (*federation.Object, bool)
	Of(subject string) []*federation.Object
	List() []*federation.Object
	Apply(ctx context.Context, o *federation.Object) (*federation.Object, error)
	Delete(ctx context.Context, o *federation.Object) error
}

// Reconciler reconciles the groups of one subject at a time.
type Reconciler struct {
	Index     *index.Index
	Fleet     Members
	Federated Federated
	Render    func(policy.ExternalGroup) (enforcer.Rendering, error)

	mu sync.Mutex
	// rendered is what Render made of the groups of one version of the index.
	rendered map[string][]enforcer.Rendered
	version  uint64
}

const (
	workers = 4
	// attempts at a federated object that others write to at the same time.
	attempts = 3
	// soon is when a decision that met a newer object is taken again, if no event comes first.
	soon = 50 * time.Millisecond
)

// +kubebuilder:rbac:groups=types.kubefed.io,resources=federatedciliumcidrgroups,verbs=get;list;watch;create;update;delete

// SetupWithManager registers the controller; its requests come from groups when ready returns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, groups *feed.Feed, ready func(context.Context) error) error {
	base := mgr.GetLogger().WithValues("controller", "externalgroup")
	c, err := controller.NewTyped("externalgroup", mgr, controller.TypedOptions[string]{
		Reconciler: r, MaxConcurrentReconciles: workers,
		LogConstructor: func(subject *string) logr.Logger {
			if subject == nil {
				return base
			}
			return base.WithValues("subject", *subject)
		},
	})
	if err != nil {
		return err
	}
	return c.Watch(groups.Source(ready))
}

// Reconcile brings the groups of one subject forward.
func (r *Reconciler) Reconcile(ctx context.Context, subject string) (reconcile.Result, error) {
	for _, state := range []func() (bool, error){r.Federated.State, r.Fleet.Registry} {
		if listed, _ := state(); !listed {
			return reconcile.Result{}, nil // whoever lists them wakes all subjects
		}
	}
	if !r.Index.CarriesGroups() {
		return reconcile.Result{}, nil
	}
	err := federation.ErrStale
	for attempt := 0; attempt < attempts && errors.Is(err, federation.ErrStale); attempt++ {
		err = r.bring(ctx, subject)
	}
	if errors.Is(err, federation.ErrStale) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) bring(ctx context.Context, subject string) error {
	view := r.Index.View()
	if err := r.Ensure(ctx, view, subject); err != nil {
		return err
	}
	wanted, err := r.render(view, subject)
	if err != nil {
		return err
	}
	for _, e := range r.Federated.Of(subject) {
		if names(wanted, e.Meta.Name) {
			continue
		}
		if err := r.remove(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
