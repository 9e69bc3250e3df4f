// Package class reconciles resource classes, subject classes and external workloads: it reports whether they are accepted (by the problems that
// the policy snapshot found), decides in which members a change of a resource class counts (rollout.go, by package waves), estimates how long a
// change of many resources takes (bulk.go), and keeps a class that is in use from being deleted (finalizer.go). It owns the statuses of these
// kinds and the finalizers of the classes, and writes nothing else.
package class

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/organization"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// conflictRequeueDelay is the delay after a conflict, if no event triggers the reconcile earlier.
const conflictRequeueDelay = 50 * time.Millisecond

// Reconciler writes the condition Accepted of the objects of one kind, and of resource classes the progress of their rollouts.
type Reconciler struct {
	Client client.Client
	Cache  *policycache.Cache
	Clock  clock.PassiveClock
	// Waiting returns the resources whose units wait to be written for KubeFed.
	Waiting func() []string
	// Rollouts decides about the rollouts of resource classes.
	Rollouts *Rollouts
	kind     string
	// get returns a copy of an object, with pointers to its observed generation and its conditions.
	get func(x *policycache.Cache, name string) (o client.Object, generation *int64, conditions *[]metav1.Condition, ok bool)
}

// +kubebuilder:rbac:groups=acp.io,resources=resourceclasses;subjectclasses;externalworkloads,verbs=list;watch
// The finalizer is a patch of the object itself; its spec is never written.
//
// +kubebuilder:rbac:groups=acp.io,resources=resourceclasses;subjectclasses,verbs=patch
// +kubebuilder:rbac:groups=acp.io,resources=resourceclasses/status;subjectclasses/status;externalworkloads/status,verbs=update

// Setup registers one controller per kind.
func Setup(
	mgr manager.Manager,
	x *policycache.Cache,
	queues policycache.Queues,
	time clock.PassiveClock,
	waiting func() []string,
	rollouts *Rollouts,
	ready func(context.Context) error,
) error {
	for _, k := range []struct {
		kind  string
		queue *requestqueue.Queue
		get   func(*policycache.Cache, string) (client.Object, *int64, *[]metav1.Condition, bool)
	}{
		{"ResourceClass", queues.ResourceClasses, resourceClass},
		{"SubjectClass", queues.SubjectClasses, subjectClass},
		{"ExternalWorkload", queues.Workloads, workload},
	} {
		r := &Reconciler{Client: mgr.GetClient(), Cache: x, Clock: time, Waiting: waiting, Rollouts: rollouts, kind: k.kind, get: k.get}
		if err := k.queue.AddController(mgr, requestqueue.Controller{Name: k.kind, Key: "name", Reconciler: r}, ready); err != nil {
			return err
		}
	}
	return nil
}

func resourceClass(x *policycache.Cache, name string) (client.Object, *int64, *[]metav1.Condition, bool) {
	o, ok := x.ResourceClass(name)
	if !ok {
		return nil, nil, nil, false
	}
	o = o.DeepCopy()
	return o, &o.Status.ObservedGeneration, &o.Status.Conditions, true
}

func subjectClass(x *policycache.Cache, name string) (client.Object, *int64, *[]metav1.Condition, bool) {
	o, ok := x.SubjectClass(name)
	if !ok {
		return nil, nil, nil, false
	}
	o = o.DeepCopy()
	return o, &o.Status.ObservedGeneration, &o.Status.Conditions, true
}

func workload(x *policycache.Cache, name string) (client.Object, *int64, *[]metav1.Condition, bool) {
	o, ok := x.Workload(name)
	if !ok {
		return nil, nil, nil, false
	}
	o = o.DeepCopy()
	return o, &o.Status.ObservedGeneration, &o.Status.Conditions, true
}

// Reconcile writes the condition if it differs.
func (r *Reconciler) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	o, generation, conditions, ok := r.get(r.Cache, name)
	if !ok {
		r.Rollouts.forget(r.kind, name)
		return reconcile.Result{}, nil
	}
	holder, finalizer := r.holderOf(o)
	if finalizer != "" {
		if gone, err := r.reconcileFinalizer(ctx, o, finalizer, !holder.IsZero()); gone || err != nil {
			return reconcile.Result{RequeueAfter: retry(err)}, ignoreConflict(err)
		}
	}
	problems := r.Cache.View().ProblemsOf(r.kind, name)
	if c, ok := o.(*v1alpha1.ResourceClass); ok && c.Spec.Organization != "" {
		organizations, err := organization.Index(ctx, r.Client)
		if err != nil {
			return reconcile.Result{}, err
		}
		if p := organizations.ClassProblem(c); p != nil {
			problems = append(slices.Clone(problems), *p)
		}
	}
	reported := []metav1.Condition{accepted(o, holder, problems)}
	if c, ok := o.(*v1alpha1.ResourceClass); ok {
		reported = append(reported, propagationEstimate(string(c.Spec.Pattern), r.Waiting()))
	}
	next := statusfields.SetConditions(*conditions, o.GetGeneration(), metav1.NewTime(r.Clock.Now()), reported...)
	step := r.advance(o)
	if *generation == o.GetGeneration() && equality.Semantic.DeepEqual(*conditions, next) && !step.differs {
		return reconcile.Result{RequeueAfter: step.delay}, nil
	}
	*generation, *conditions = o.GetGeneration(), next
	err := r.Client.Status().Update(ctx, o)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write the status of %s %s: %w", r.kind, name, err)
	}
	if c, ok := o.(*v1alpha1.ResourceClass); ok {
		r.Rollouts.announce(ctx, c, step.changes, r.Clock.Now())
	}
	return reconcile.Result{RequeueAfter: step.delay}, nil
}

// accepted combines the problems of the snapshot with those that only placement and deletion show. It is pure.
func accepted(o client.Object, holder message.Message, problems []policy.Problem) metav1.Condition {
	if o.GetDeletionTimestamp() != nil && !holder.IsZero() {
		return statusfields.False(v1alpha1.ConditionAccepted, v1alpha1.ReasonInvalid, holder.Text)
	}
	if c, ok := o.(*v1alpha1.ResourceClass); ok {
		if _, err := federation.Resolve(c.Spec.Placement, nil); err != nil {
			// The units of the class cannot be placed, which has the same effect as leaving the class out.
			problems = append(slices.Clone(problems), policy.Problem{Reason: v1alpha1.ReasonInvalid, Message: message.Of(err), LeftOut: true})
		}
	}
	return statusfields.Accepted(problems, "")
}
