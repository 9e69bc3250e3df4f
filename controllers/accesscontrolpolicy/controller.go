package accesscontrolpolicy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/grace"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
)

// Federated reads the host's Federated objects.
type Federated interface {
	// State reports whether the objects were listed, and the error if they cannot be.
	State() (bool, error)
	// Of returns the objects about a resource.
	Of(resource string) []*federation.Object
	// List returns all objects.
	List() []*federation.Object
}

// Reconciler writes the status of policies.
type Reconciler struct {
	Client    client.Client
	Cache     *policycache.Cache
	Reports   *statuscache.Cache
	Federated Federated
	// Units receives the units that must be reconciled before a policy's status can be written.
	Units *requestqueue.Queue
	// Clock is the time at which statements begin and end. SystemClock measures the delay of a status write; nil means the
	// machine's clock.
	Clock, SystemClock clock.PassiveClock
	// FirstStatusDelay bounds how long the first status of a policy is deferred while its units are propagated.
	FirstStatusDelay time.Duration

	// deferredStatus tracks policies whose progress-only status write is delayed.
	deferredStatus grace.Tracker
	// recorded are the units that concern a policy according to the host's objects.
	recorded recordedUnits
}

const (
	workers = 4
	// conflictRequeueDelay is the delay after a conflict, if no event triggers the reconcile earlier.
	conflictRequeueDelay = 50 * time.Millisecond
)

// +kubebuilder:rbac:groups=acp.io,resources=accesscontrolpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=acp.io,resources=accesscontrolpolicies/status,verbs=update

// SetupWithManager registers the controller; its requests come from policies when ready returns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, policies *requestqueue.Queue, ready func(context.Context) error) error {
	return policies.AddController(mgr, requestqueue.Controller{Name: "accesscontrolpolicy", Key: "policy", Workers: workers, Reconciler: r}, ready)
}

// Reconcile writes the status of one policy, once every unit that it concerns was decided with its present spec.
func (r *Reconciler) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	f, ok := r.gather(name)
	if !ok {
		r.deferredStatus.InGrace(name, false, r.systemClock().Now(), 0)
		return reconcile.Result{}, nil
	}
	undecided, listed := r.recorded.undecided(name, r.Federated, r.Reports)
	if !listed {
		return reconcile.Result{RequeueAfter: startup.PollInterval}, nil
	}
	f.Missing = append(f.Missing, undecided...)
	if stale := f.stale(); len(stale) > 0 {
		// The reports of these units trigger this policy again, even if they contain nothing of it.
		r.Reports.Await(name, stale...)
		r.Units.Add(requestqueue.Observed, stale...)
		return reconcile.Result{}, nil
	}
	next := f.Policy.DeepCopy()
	next.Status = status(f)
	now := r.systemClock().Now()
	if equality.Semantic.DeepEqual(f.Policy.Status, next.Status) {
		r.deferredStatus.InGrace(name, false, now, 0)
		return reconcile.Result{}, nil
	}
	if deferral := statusDeferral(f, &next.Status, r.FirstStatusDelay); r.deferredStatus.InGrace(name, deferral > 0, now, deferral) {
		return reconcile.Result{RequeueAfter: deferral, Priority: new(requestqueue.StatusUpdate)}, nil
	}
	r.deferredStatus.InGrace(name, false, now, 0) // progress after this write may be deferred again
	err := r.Client.Status().Update(ctx, next)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("write the status of AccessControlPolicy %s: %w", name, err)
	case err == nil:
		r.Cache.StorePolicy(next)
	}
	return reconcile.Result{}, nil
}

// systemClock returns the clock for the delay of status writes.
func (r *Reconciler) systemClock() clock.PassiveClock {
	return cmp.Or[clock.PassiveClock](r.SystemClock, clock.RealClock{})
}

// statusDeferral returns how long a status may be deferred because it only shows progress; 0 if it shows something else.
// first is the limit for a policy without a status.
func statusDeferral(f *facts, next *v1alpha1.AccessControlPolicyStatus, first time.Duration) time.Duration {
	reports := f.relevantReports()
	progress := statusfields.Progress{
		Awaited:      slices.ContainsFunc(reports, statuscache.Report.Awaited),
		Troubled:     slices.ContainsFunc(reports, statuscache.Report.Troubled),
		TroubleShown: func() bool { return showsTrouble(f.Policy.Status.Units, reports) },
	}
	return statusfields.DeferralLimit(f.Policy.Status.Conditions, next.Conditions, progress, first)
}

// showsTrouble reports whether the units of a status show exactly the members that are neither Pending nor Realized now, in the same states.
func showsTrouble(shown []v1alpha1.PolicyUnit, now []statuscache.Report) bool {
	states := map[v1alpha1.ResourceName][]v1alpha1.ClusterState{}
	for i := range shown {
		states[shown[i].Resource] = shown[i].States()
	}
	for i := range now {
		resource := v1alpha1.ResourceName(now[i].Resource)
		if !statusfields.ShowsTrouble(states[resource], now[i].Clusters) {
			return false
		}
		delete(states, resource)
	}
	for _, gone := range states {
		if !statusfields.ShowsTrouble(gone, nil) {
			return false
		}
	}
	return true
}
