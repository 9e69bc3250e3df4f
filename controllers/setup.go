// Package controllers wires the controllers of the adapter: one policy cache, one view of the federated objects and of
// the members, one status cache, and the triggers between them. It contains no other logic.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/accesscontrolpolicy"
	"github.com/acp-io/acp/controllers/approvalpolicy"
	"github.com/acp-io/acp/controllers/class"
	"github.com/acp-io/acp/controllers/membercluster"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/metrics"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/protectedresource"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/tracing"
)

// Config is the configuration of the controllers, in addition to the manager.
type Config struct {
	// KubeFedNamespace contains the KubeFedClusters, and CredentialsNamespace the tokens for reading the members.
	KubeFedNamespace, CredentialsNamespace string
	// Probing configures the probes of the members; the zero value means federation.DefaultProbing.
	Probing federation.Probing
	// Checks is the timing of the health checks of the members; the zero value means memberhealth.DefaultTiming.
	Checks memberhealth.Timing
	// StatusInterval is the time between two writes about one member; the zero value means
	// membercluster.DefaultInterval.
	StatusInterval time.Duration
	// Metrics is the registry of the metrics; nil disables them.
	Metrics prometheus.Registerer
	// TokenChecks is the time between two checks of the members' tokens; zero means rotation.DefaultInterval.
	TokenChecks time.Duration
	// WriteLimits bounds what KubeFed has to propagate to each member at a time; the zero value means
	// writequeue.DefaultLimits.
	WriteLimits writequeue.Limits
	// DirectWrites is the number of urgent objects that the adapter itself writes concurrently into each member; 0
	// means memberwriter.DefaultPerMember.
	DirectWrites int
	// Workers is the number of resources that are reconciled concurrently; 0 means protectedresource.DefaultWorkers.
	Workers int
	// Clock is the clock; nil means the real one.
	Clock clock.WithTicker
	// Tracer continues the traces of changes of policies; nil disables that.
	Tracer *tracing.Tracer
	// ClockLag returns how far this machine's clock is behind the host's, for the metrics; nil if it is not known.
	ClockLag func() time.Duration
}

func (c Config) validate() error {
	if c.KubeFedNamespace == "" || c.CredentialsNamespace == "" {
		return errors.New("controllers: KubeFedNamespace and CredentialsNamespace are needed")
	}
	return nil
}

// +kubebuilder:rbac:groups=core.kubefed.io,namespace=kube-federation-system,resources=kubefedclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=acp-system,resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=acp-system,resources=leases,verbs=get;create;update
// The leader's election writes its Events beside its lease, by the older interface.
// +kubebuilder:rbac:groups="",namespace=acp-system,resources=events,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,namespace=acp-system,resources=events,verbs=create

// Setup adds everything to the manager.
func Setup(ctx context.Context, mgr manager.Manager, config Config) error {
	if err := config.validate(); err != nil {
		return err
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.WriteLimits == (writequeue.Limits{}) {
		config.WriteLimits = writequeue.DefaultLimits
	}
	host, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client of the host cluster: %w", err)
	}
	feeds, board := policycache.NewQueues(), statuscache.New()
	x := policycache.New(feeds)
	ready, err := x.Listen(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	w := &triggers{cache: x, reports: board, units: feeds.Units, log: mgr.GetLogger().WithName("fleet")}
	objects := federation.NewObjects(host, federation.CiliumPolicy, mgr.GetLogger(), w.onHostObject)
	w.objects = objects
	fleet, err := federation.NewFleet(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Kind: federation.CiliumPolicy, Revision: enforcer.Revision, Probing: config.Probing, Log: mgr.GetLogger(), Changed: w.onMemberObject,
	})
	if err != nil {
		return err
	}
	w.fleet = fleet
	if w.istio, ready, err = setUpIstio(mgr, host, config, w, ready); err != nil {
		return err
	}
	w.kinds = federation.KindStores{
		{Kind: federation.CiliumPolicy, Host: objects, Members: fleet}, {Kind: federation.IstioPolicy, Host: w.istio.objects, Members: w.istio.fleet},
	}
	w.pending = &pendingTracker{queue: writequeue.New("policies", config.WriteLimits), objects: w.kinds, members: w.kinds, clock: config.Clock}
	if err := errors.Join(w.pending.add(mgr, feeds.Units), w.pending.show(mgr, x)); err != nil {
		return err
	}
	if w.inspector, err = setUpMembers(mgr, config, w); err != nil {
		return err
	}
	if err := setUpRotation(mgr, config, w); err != nil {
		return err
	}
	directly, err := setUpMemberWriter(mgr, config, w)
	if err != nil {
		return err
	}
	if w.marks, err = setUpMarks(mgr, host, config, w); err != nil {
		return err
	}
	if ready, err = setUpLabelReader(mgr, host, config, w, ready); err != nil {
		return err
	}
	if w.foreign, err = setUpForeignPolicies(mgr, host, config, w); err != nil {
		return err
	}
	for _, run := range []manager.Runnable{always(objects.Run), always(fleet.Run), &policycache.Clock{Index: x, Time: config.Clock, Ready: ready}} {
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	groups, ready, err := setUpGroups(mgr, host, config, w, feeds.Groups, ready)
	if err != nil {
		return err
	}
	if w.memberStatus, err = setUpMemberClusters(mgr, config, w, ready); err != nil {
		return err
	}
	measures, err := metrics.New(config.Metrics)
	if err != nil {
		return err
	}
	if err := metrics.RegisterClock(config.Metrics, config.ClockLag); err != nil {
		return err
	}
	units := &protectedresource.Reconciler{
		Client: mgr.GetClient(), Cache: x, Fleet: w.kinds, Federated: w.kinds, Reports: board, Metrics: measures, Policies: feeds.Policies, Groups: groups,
		Queue: w.pending.queue, Workers: config.Workers, UpdatePending: w.pending.object, MemberWriter: directly, MaxInFlight: config.WriteLimits.MaxInFlight, Units: feeds.Units, Members: w.inspector, Has: w.names.has, OpenedBy: w.foreign.openedBy, ForeignUnknown: w.foreign.unknownReason, Mark: w.marks.In,
		Enforcers: w.istio.drivers(), Clock: config.Clock, Tracer: config.Tracer, Events: mgr.GetEventRecorder("acp-adapter"),
	}
	if err := units.SetupWithManager(mgr, ready); err != nil {
		return err
	}
	policies := &accesscontrolpolicy.Reconciler{
		Client: mgr.GetClient(), Cache: x, Reports: board, Federated: w.kinds, Units: feeds.Units, Clock: config.Clock,
	}
	if err := policies.SetupWithManager(mgr, feeds.Policies, ready); err != nil {
		return err
	}
	if err := approvalpolicy.Setup(mgr, config.Clock); err != nil {
		return err
	}
	return class.Setup(mgr, x, feeds, config.Clock, w.pending.queue.Waiting, ready)
}

// always is a runnable on every replica, so that a new leader has a current view of the fleet.
type always func(context.Context) error

func (f always) Start(ctx context.Context) error { return f(ctx) }

func (always) NeedLeaderElection() bool { return false }

// after returns a ready function that also waits for known.
func after(ready func(context.Context) error, known <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		select {
		case <-known:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// triggers maps events in the host and in the members to the resources to reconcile.
type triggers struct {
	cache   *policycache.Cache
	reports *statuscache.Cache
	units   *requestqueue.Queue
	// objects and fleet are those of Cilium's policies, by which the members' health is determined. kinds are the
	// stores of every kind of policy.
	objects *federation.Objects
	fleet   *federation.Fleet
	istio   *istio
	kinds   federation.KindStores
	pending *pendingTracker
	names   *labelReader
	// inspector checks the members' health.
	inspector *memberhealth.Inspector
	// memberStatus writes the MemberClusters.
	memberStatus *membercluster.Writer
	foreign      foreignPolicies
	// marks are the downgrade marks.
	marks *federation.DowngradeMarks
	log   logr.Logger
}

// onHostObject handles an event about a Federated object.
func (w *triggers) onHostObject(name, resource string) {
	w.foreign.recheck("")
	if name == "" {
		w.names.requeue()
		w.requeueAll()
		return
	}
	w.pending.object(name)
	if known, ok := w.reports.ResourceOf(name); ok {
		w.units.Add(requestqueue.Observed, known)
	}
	if resource != "" {
		w.units.Add(requestqueue.Observed, resource)
	}
}

// onMemberObject handles an event about an object in a member, or about the member.
func (w *triggers) onMemberObject(cluster, object string) {
	if object == "" {
		if cluster != "" {
			w.logMember(cluster)
		}
		w.cache.SetClusters(members(w.fleet.Clusters()))
		w.inspector.Wake()
		w.memberStatus.Wake()
		w.requeueAll()
		return
	}
	w.pending.object(object)
	if resource, ok := w.reports.ResourceOf(object); ok {
		w.units.Add(requestqueue.Observed, resource)
		return
	}
	if federated, ok := w.kinds.Get(object); ok && federated.Resource() != "" {
		w.units.Add(requestqueue.Observed, federated.Resource())
		return
	}
	if found := w.kinds.Observe(cluster, object).Object; found != nil && (found.Managed || strings.HasPrefix(found.Name, v1alpha1.ObjectPrefix)) {
		w.log.Info("A member has a policy under ACP's reserved name that nothing asks for: find out who wrote it, and delete it there",
			"member", cluster, "policy", object)
	}
}

// members converts the registered clusters to the form that policies are compiled for, by name.
func members(clusters []federation.Cluster) []policy.Cluster {
	out := make([]policy.Cluster, len(clusters))
	for i, c := range clusters {
		labels := c.Labels
		if labels == nil {
			labels = map[string]string{} // the member has no labels, which is different from unknown labels
		}
		out[i] = policy.Cluster{Name: c.Name, Labels: labels, Istio: c.Istio, IstioRoot: c.Places.OtherIstioRoot()}
	}
	slices.SortFunc(out, func(a, b policy.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// logMember logs that a member was lost or found, which the statuses report, too.
func (w *triggers) logMember(cluster string) {
	o := w.fleet.Observe(cluster, "")
	w.log.Info("Member", "member", cluster, "registered", o.Registered, "reachable", o.Reachable, "message", o.Message)
}

// onFinding handles a new finding in a member.
func (w *triggers) onFinding() { w.memberStatus.Wake() }

func (w *triggers) requeueAll() {
	w.pending.everything()
	w.cache.EnqueueAll(requestqueue.Bulk)
	w.units.Add(requestqueue.Bulk, w.reports.Resources()...)
	for _, o := range w.kinds.List() {
		// This includes resources that nothing wants any more.
		if r := o.Resource(); r != "" {
			w.units.Add(requestqueue.Bulk, r)
		}
	}
}
