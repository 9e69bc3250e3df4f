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
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/tracing"
)

// Reconciler reconciles one unit at a time, by the name of its resource (spec.resource) or its wildcard. All ProtectedResources of one
// resource are one unit.
type Reconciler struct {
	Client    client.Client
	Cache     *policycache.Cache
	Fleet     federation.Members
	Federated federation.Host
	// Groups writes the groups, before the units that refer to them, except for what only revokes (see writeUrgently).
	Groups *externalgroup.Reconciler
	// Members returns what was found in the members themselves.
	Members Members
	// Has reports whether a pod of a member has a label, as of the last read, and whether the member was ever read. The
	// value "" matches any pod that has the key.
	Has func(cluster, key, value string) (has, read bool)
	// OpenedBy returns the name of a policy of others that opens the pods with a label for a dataplane in a member, or
	// "".
	OpenedBy func(dataplane v1alpha1.EnforcerName, cluster, key, value string) string
	// GroupInClass returns the name of an address group of others in a member that has the label of a subject class's groups, or "";
	// nil disables that.
	GroupInClass func(cluster, label string) string
	// ForeignUnknown returns the reason why it is not known whether policies of others open something for a dataplane
	// in a member, or "".
	ForeignUnknown func(dataplane v1alpha1.EnforcerName, cluster string) message.Message
	// Nodes returns what is known about the nodes of a member, or nil if it runs no acp-node; nil disables that.
	Nodes func(cluster string) *federation.NodeView
	// Mark returns the downgrade mark in a member, or nil.
	Mark      func(cluster string) *guard.DowngradeMark
	Enforcers Enforcers
	Reports   *statuscache.Cache
	// Queue decides the order of writes, UpdatePending updates it with what KubeFed has not yet propagated of an
	// object, and Units has the requested units.
	Queue *writequeue.Queue
	// Workers is the number of resources that are reconciled concurrently; 0 means DefaultWorkers.
	Workers       int
	UpdatePending func(object string)
	// Engines distribute the objects to the members; nil means that only KubeFed does, and at its own pace.
	Engines Engines
	// MaxInFlight bounds how long a write waits for KubeFed to report on the previous version of the same object.
	MaxInFlight time.Duration
	// FirstStatusDelay bounds how long the first status of an object is deferred while its unit is propagated.
	FirstStatusDelay time.Duration
	Units            *requestqueue.Queue
	// Metrics records what happens to units.
	Metrics *metrics.UnitMetrics
	// Policies receives the policies that a report concerns.
	Policies *requestqueue.Queue
	// Clock is the time at which statements begin and end. SystemClock measures what other processes take, such as
	// KubeFed; nil means the machine's clock. They differ in tests, which set the time but not the speed of KubeFed.
	Clock, SystemClock clock.PassiveClock
	Events             events.EventRecorder
	// Tracer continues the traces of changes; nil disables that.
	Tracer *tracing.Tracer

	traces changeTraces
	recent recentWrites
	// missingGroups tracks resources whose enforcement is deferred until the groups that they allow exist in the member.
	missingGroups grace.Tracker
	// deferredStatus tracks resources whose progress-only status write is delayed.
	deferredStatus grace.Tracker
	// slow are the members that get changes later than the others.
	slow slowMembers
}

// Engines is the part of the propagation engines that the package uses. propagation.Engines implements it.
type Engines interface {
	// DeliverUrgent distributes an object that was just written before everything that is not urgent.
	DeliverUrgent(o *federation.Object)
	// WithoutPriorities returns those of some members whose engine does not write urgent objects before others.
	WithoutPriorities(clusters []string) []string
}

// Enforcers are the enforcers in use.
type Enforcers interface {
	// Of returns the enforcer with a name, or the reason why there is none.
	Of(name v1alpha1.EnforcerName, v *policycache.View, clusters []federation.Cluster, now time.Time) (enforcer.Enforcer, *dataplane.Reason)
	// NotEnforcing returns, by member, the reason why it enforces nothing that an enforcer renders.
	NotEnforcing(name v1alpha1.EnforcerName, clusters []federation.Cluster) map[string]message.Message
	// Dedications returns what members declare about the waypoint of a resource, by member.
	Dedications(resource string, clusters []federation.Cluster) map[string]istio.Dedication
}

// DefaultWorkers is the number of resources that are reconciled concurrently; the workers mostly wait for the host's
// API server.
const DefaultWorkers = 8

// attempts bounds the writes of a federated object that KubeFed writes at the same time. Each attempt begins with the
// newer object.
const attempts = 3

// conflictRequeueDelay is the delay after a conflict, if no event triggers the reconcile earlier.
const conflictRequeueDelay = 50 * time.Millisecond

// graceCheckInterval is the interval at which expired grace periods are checked; the awaited event triggers the
// reconcile earlier.
const graceCheckInterval = time.Second

// gatewayCheckInterval is how often a unit checks whether the waypoint that is dedicated to its resource is free of the objects of others.
const gatewayCheckInterval = 2 * time.Second

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
	return r.Units.AddController(
		mgr,
		requestqueue.Controller{Name: "protectedresource", Key: "resource", Workers: cmp.Or(r.Workers, DefaultWorkers), Reconciler: r},
		ready,
	)
}

// Reconcile takes the next step for one resource and reports its state: it reads the facts, plans, applies the plan, and
// reports what the members have.
func (r *Reconciler) Reconcile(ctx context.Context, resource string) (reconcile.Result, error) {
	request := r.Units.Pending(resource)
	var out outcome
	for range attempts {
		if out = r.attempt(ctx, resource, request != 0); out.Step != stepRollout && !errors.Is(out.Err, federation.ErrStale) {
			break
		}
	}
	if out.decided() && !out.deferred() {
		r.Queue.Done(resource)
		if out.Err == nil {
			r.Units.Complete(resource, request)
		}
	}
	switch {
	case !out.decided():
	case out.conflicted():
		log.FromContext(ctx).V(1).Info("The object changed meanwhile; reconciling again", "because", out.Err.Error())
	default: // a failure is reported before the retry
		r.report(ctx, &out)
		r.trace(ctx, &out)
	}
	return out.result()
}

// attempt reads, plans and applies once.
func (r *Reconciler) attempt(ctx context.Context, resource string, requested bool) outcome {
	out := outcome{Step: stepUnread}
	out.Times.Begin = r.systemClock().Now()
	f, err := r.gather(resource)
	out.Times.Gathered = r.systemClock().Now()
	if err != nil {
		if out.Err = err; errors.Is(err, errNotReady) {
			out.Step = stepNotReady
		}
		return out
	}
	changed, safe, err := r.storeRollout(ctx, f)
	if changed || !safe {
		out.Step, out.Err = stepRollout, err
		return out
	}
	out.RolloutErr = err
	out.Step, out.Facts, out.Existing, out.Problem = stepApplied, f, f.Existing, f.Problem
	if out.Plan, out.Err = newPlan(f); out.Err == nil {
		priority := priorityOf(f, &out.Plan, requested)
		if out.Step, out.MissingGroup = r.admit(f, &out.Plan, priority); out.Step == stepApplied {
			out.Err = r.apply(ctx, &out, priority)
		}
	}
	out.Times.Acted = r.systemClock().Now()
	return out
}

// systemClock returns the clock for the durations of other processes.
func (r *Reconciler) systemClock() clock.PassiveClock {
	return cmp.Or[clock.PassiveClock](r.SystemClock, clock.RealClock{})
}
