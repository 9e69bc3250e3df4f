// Package approvalpolicy reports whether the expressions of approval policies compile. It owns their statuses and
// writes nothing else. It reads neither tickets nor people: the portal resolves the approvers of a step when a request
// is submitted.
package approvalpolicy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/approval/rules"
)

// Reconciler writes the condition Accepted.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// +kubebuilder:rbac:groups=acp.io,resources=approvalpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=acp.io,resources=approvalpolicies/status,verbs=update

// Setup registers the controller.
func Setup(mgr manager.Manager, time clock.PassiveClock) error {
	err := builder.ControllerManagedBy(mgr).Named("ApprovalPolicy").
		For(&v1alpha1.ApprovalPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&Reconciler{Client: mgr.GetClient(), Clock: time})
	if err != nil {
		return fmt.Errorf("set up the controller of approval policies: %w", err)
	}
	return nil
}

// Reconcile writes the status if it differs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var o v1alpha1.ApprovalPolicy
	if err := r.Client.Get(ctx, req.NamespacedName, &o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	next := statusfields.SetConditions(o.Status.Conditions, o.Generation, metav1.NewTime(r.Clock.Now()), Accepted(&o))
	if o.Status.ObservedGeneration == o.Generation && equality.Semantic.DeepEqual(o.Status.Conditions, next) {
		return reconcile.Result{}, nil
	}
	o.Status.ObservedGeneration, o.Status.Conditions = o.Generation, next
	if err := r.Client.Status().Update(ctx, &o); err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("write the status of approval policy %s: %w", o.Name, err)
	}
	return reconcile.Result{}, nil
}

// Accepted returns the condition Accepted of a policy. A policy for which it is False still counts: what cannot be
// evaluated counts against requests.
func Accepted(o *v1alpha1.ApprovalPolicy) metav1.Condition {
	accepted, m := rules.Acceptance(o)
	if !accepted {
		return statusfields.False(v1alpha1.ConditionAccepted, v1alpha1.ReasonInvalid, m.Text)
	}
	return statusfields.True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, m.Text)
}
