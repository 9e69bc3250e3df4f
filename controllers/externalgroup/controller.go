package externalgroup

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/controllers/feed"
	"github.com/acp-io/acp/controllers/index"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Reconciler reconciles the groups of one subject at a time.
type Reconciler struct {
	Index     *index.Index
	Fleet     federation.Members
	Federated federation.Host
	Render    func(policy.ExternalGroup) (enforcer.Rendering, error)

	mu sync.Mutex
	// rendered is what Render made of each subject's group, as it was last.
	rendered map[string]rendering
}

type rendering struct {
	group   policy.ExternalGroup
	objects []enforcer.Rendered
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
	return groups.Drive(mgr, feed.Controller{Name: "externalgroup", Key: "subject", Workers: workers, Reconciler: r}, ready)
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
