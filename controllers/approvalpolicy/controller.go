// Package approvalpolicy reports whether the expressions of approval policies compile, and whether the policies are within the bounds of
// their organizations. It owns their statuses and
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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/organization"
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
	r := &Reconciler{Client: mgr.GetClient(), Clock: time}
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := builder.ControllerManagedBy(mgr).Named("ApprovalPolicy").
		For(&v1alpha1.ApprovalPolicy{}, spec).
		Watches(&v1alpha1.Organization{}, handler.EnqueueRequestsFromMapFunc(r.ofOrganization), spec).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller of approval policies: %w", err)
	}
	return nil
}

// ofOrganization returns a request for each policy of an organization.
func (r *Reconciler) ofOrganization(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.ApprovalPolicyList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil // a list of the cache fails only when the manager stops
	}
	var out []reconcile.Request
	for i := range list.Items {
		if string(list.Items[i].Spec.Organization) == o.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile writes the status if it differs.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var o v1alpha1.ApprovalPolicy
	if err := r.Client.Get(ctx, req.NamespacedName, &o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	organizations, err := organization.Index(ctx, r.Client)
	if err != nil {
		return reconcile.Result{}, err
	}
	condition := Accepted(&o)
	if p := organizations.PolicyProblem(&o); p != nil && condition.Status == metav1.ConditionTrue {
		condition = statusfields.False(v1alpha1.ConditionAccepted, p.Reason, p.Message.Text)
	}
	next := statusfields.SetConditions(o.Status.Conditions, o.Generation, metav1.NewTime(r.Clock.Now()), condition)
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
