package protectedresource

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/client-go/tools/events"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/grace"
	"github.com/acp-io/acp/controllers/metrics"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
)

// Reconciler reconciles resources by name, so that two ProtectedResources of one name are one matter.
type Reconciler struct {
	Client    client.Client
	Cache     *policycache.Cache
	Fleet     federation.Members
	Federated federation.Host
	// Groups are written before the units that refer to them.
	Groups *externalgroup.Reconciler
	// Members tells what was found in the members themselves.
	Members Members
	// Has reports whether a pod of a member has a label, as far as the member was ever read, and whether it was. The
	// value "" asks for any pod that has the key.
	Has func(cluster, key, value string) (has, read bool)
	// Opened names a policy that is not ACP's and opens the pods with a label for a dataplane in a member; "": there is none.
	Opened func(dataplane v1alpha1.EnforcerName, cluster, key, value string) string
	// Unjudged says why nobody knows whether a policy that is not ACP's opens something for a dataplane in a member; "": it is known.
	Unjudged func(dataplane v1alpha1.EnforcerName, cluster string) string
	// Mark is that of a downgrade in a member; nil: there is none.
	Mark      func(cluster string) *guard.Downgrade
	Enforcers Enforcers
	Reports   *statuscache.Cache
	// Queue says whose turn it is to be written, Owes tells it what KubeFed owes of an object now, and Units knows who is
	// waited for.
	Queue *writequeue.Queue
	// Workers is how many resources are reconciled at the same time; 0 is DefaultWorkers.
	Workers       int
	UpdatePending func(object string)
	// MemberWriter brings what is urgent to the members beside KubeFed; nil: nobody does.
	MemberWriter interface{ Send(o *federation.Object) }
	// MaxInFlight is how long a change of an object waits at most for what KubeFed says about the one before.
	MaxInFlight time.Duration
	Units       *requestqueue.Queue
	// Metrics count what happens to units.
	Metrics *metrics.UnitMetrics
	// Policies is told which policies a report concerns.
	Policies *requestqueue.Queue
	Clock    clock.PassiveClock
	Events   events.EventRecorder

	settling settling
	// closing are the resources that would refuse what they mean to let in, and wait for it.
	closing grace.Tracker
	// deferredStatus are the resources whose status waits for more to say.
	deferredStatus grace.Tracker
}

// Enforcers are those that are driven now.
type Enforcers interface {
	// Of is the enforcer of a name, or why there is none.
	Of(name v1alpha1.EnforcerName, v *policycache.View, clusters []federation.Cluster, now time.Time) (enforcer.Enforcer, *dataplane.Reason)
	// Lacking says of members why they enforce nothing of what an enforcer gives them.
	Lacking(name v1alpha1.EnforcerName, clusters []federation.Cluster) map[string]string
}

// DefaultWorkers is how many resources are reconciled at the same time; the workers mostly wait for the host's API server.
const DefaultWorkers = 8

// attempts at a federated object that KubeFed writes to at the same time. Each begins with the newer object.
const attempts = 3

// conflictRequeueDelay is when a decision that met a newer object is taken again, if no event comes first.
const conflictRequeueDelay = 50 * time.Millisecond

// graceCheckInterval is when somebody looks whether the patience of what waits is over; what it waits for wakes it before.
const graceCheckInterval = time.Second

// The finalizer is a patch of the object itself; its spec is never written.
//
// +kubebuilder:rbac:groups=acp.io,resources=protectedresources,verbs=list;watch;patch
// +kubebuilder:rbac:groups=acp.io,resources=protectedresources/status,verbs=update
// +kubebuilder:rbac:groups=types.kubefed.io,resources=federatedciliumclusterwidenetworkpolicies,verbs=get;list;watch;create;update;delete
// Events about objects without namespace are in default.
//
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// SetupWithManager registers the controller; its requests come from Units when ready returns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, ready func(context.Context) error) error {
	return r.Units.AddController(mgr, requestqueue.Controller{Name: "protectedresource", Key: "resource", Workers: cmp.Or(r.Workers, DefaultWorkers), Reconciler: r}, ready)
}

// Reconcile brings one resource forward and tells how far it is.
func (r *Reconciler) Reconcile(ctx context.Context, resource string) (reconcile.Result, error) {
	var f *facts
	var done outcome
	asked := r.Units.Pending(resource)
	err := federation.ErrStale
	for attempt := 0; attempt < attempts && errors.Is(err, federation.ErrStale); attempt++ {
		if f, err = r.gather(resource); errors.Is(err, errNotReady) {
			return reconcile.Result{}, nil
		} else if err != nil {
			return reconcile.Result{}, err
		}
		done, err = r.act(ctx, f, asked != 0)
	}
	if !done.Waits {
		r.Queue.Done(resource)
		if err == nil {
			r.Units.Complete(resource, asked)
		}
	}
	if errors.Is(err, federation.ErrStale) || errors.Is(err, errConflict) {
		log.FromContext(ctx).V(1).Info("Deciding again", "because", err.Error())
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	// What failed is told before it is tried again.
	deferred, statusErr := r.report(ctx, f, done)
	if statusErr != nil {
		if errors.Is(statusErr, errConflict) {
			return reconcile.Result{RequeueAfter: conflictRequeueDelay}, err
		}
		err = errors.Join(err, statusErr)
	}
	if err == nil && done.WaitsFor != "" {
		return reconcile.Result{RequeueAfter: graceCheckInterval}, nil
	}
	if err == nil && (done.Soon || f.firstGroups()) {
		// What happened to a group before the board knew that this unit refers to it woke nobody.
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	if err == nil && deferred > 0 {
		return reconcile.Result{RequeueAfter: deferred, Priority: new(requestqueue.StatusUpdate)}, nil
	}
	return reconcile.Result{}, err
}
