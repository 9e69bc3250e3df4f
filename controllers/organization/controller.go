// Package organization reports whether organizations are accepted. It owns their statuses and writes nothing else. It does not read
// people: the portal resolves the administrators and the teams.
package organization

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/organization"
)

// Reconciler writes the condition Accepted of organizations.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Changed is called when an organization may have changed, because the classes that belong to it may be outside of its bounds now.
	Changed func()
}

// +kubebuilder:rbac:groups=acp.io,resources=organizations,verbs=list;watch
// +kubebuilder:rbac:groups=acp.io,resources=organizations/status,verbs=update

// Setup registers the controller.
func Setup(mgr manager.Manager, time clock.PassiveClock, changed func()) error {
	r := &Reconciler{Client: mgr.GetClient(), Clock: time, Changed: changed}
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	// A change of one organization can begin or end a conflict with another one.
	err := builder.ControllerManagedBy(mgr).Named("Organization").
		For(&v1alpha1.Organization{}, spec).
		Watches(&v1alpha1.Organization{}, handler.EnqueueRequestsFromMapFunc(r.all), spec).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller of organizations: %w", err)
	}
	return nil
}

// all returns a request for each organization.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.OrganizationList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil // a list of the cache fails only when the manager stops
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile writes the status of an organization if it differs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.Changed()
	index, err := Index(ctx, r.Client)
	if err != nil {
		return reconcile.Result{}, err
	}
	cached := index.Get(v1alpha1.OrganizationName(req.Name))
	if cached == nil {
		return reconcile.Result{}, nil
	}
	o := cached.DeepCopy()
	next := statusfields.SetConditions(o.Status.Conditions, o.Generation, metav1.NewTime(r.Clock.Now()), accepted(index, o))
	if o.Status.ObservedGeneration == o.Generation && equality.Semantic.DeepEqual(o.Status.Conditions, next) {
		return reconcile.Result{}, nil
	}
	o.Status.ObservedGeneration, o.Status.Conditions = o.Generation, next
	if err := r.Client.Status().Update(ctx, o); err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("write the status of organization %s: %w", o.Name, err)
	}
	return reconcile.Result{}, nil
}

func accepted(index *organization.Index, o *v1alpha1.Organization) metav1.Condition {
	if ok, m := index.Acceptance(o); !ok {
		return statusfields.False(v1alpha1.ConditionAccepted, v1alpha1.ReasonTeamConflict, m.Text)
	}
	return statusfields.True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "")
}

// Index returns the organizations that a client reads.
func Index(ctx context.Context, c client.Reader) (*organization.Index, error) {
	var list v1alpha1.OrganizationList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the organizations: %w", err)
	}
	all := make([]*v1alpha1.Organization, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return organization.NewIndex(all), nil
}
