// Package controllers puts the controllers of the adapter together: one index, one view of the federated objects and
// of the members, one board, and who wakes whom. It has no logic of its own.
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
)

// Config is what the controllers need beside the manager.
type Config struct {
	// KubeFedNamespace holds the KubeFedClusters, CredentialsNamespace the tokens for reading the members.
	KubeFedNamespace, CredentialsNamespace string
	// Probing of the members; the zero value is federation.DefaultProbing.
	Probing federation.Probing
	// Looks at the members; the zero value is member.DefaultTiming.
	Looks memberhealth.Timing
	// Tell is the time between two writes about one member; the zero value is membercluster.DefaultEvery.
	Tell time.Duration
	// Metrics are registered here; nil: nowhere.
	Metrics prometheus.Registerer
	// TokenChecks is the time between two looks at the members' tokens; zero is rotation.DefaultInterval.
	TokenChecks time.Duration
	// Pace limits what KubeFed is given for each member at a time; the zero value is pace.DefaultLimits.
	Pace writequeue.Limits
	// DirectWrites is how many urgent objects the adapter itself writes at the same time into each member; 0 is
	// direct.DefaultPerMember.
	DirectWrites int
	// Workers is how many resources are reconciled at the same time; 0 is protectedresource.DefaultWorkers.
	Workers int
	// Clock; nil is the real one.
	Clock clock.WithTicker
	// Behind is how far this machine's clock is behind the host's, for the metrics; nil: it is not known.
	Behind func() time.Duration
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
	if config.Pace == (writequeue.Limits{}) {
		config.Pace = writequeue.DefaultLimits
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
	w.pending = &pendingTracker{queue: writequeue.New("policies", config.Pace), objects: w.kinds, members: w.kinds, clock: config.Clock}
	if err := errors.Join(w.pending.add(mgr, feeds.Units), w.pending.show(mgr, x)); err != nil {
		return err
	}
	if w.inspector, err = setUpMembers(mgr, config, w); err != nil {
		return err
	}
	if err := setUpRotation(mgr, config, w); err != nil {
		return err
	}
	directly, err := setUpDirect(mgr, config, w)
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
	if err := metrics.RegisterClock(config.Metrics, config.Behind); err != nil {
		return err
	}
	units := &protectedresource.Reconciler{
		Client: mgr.GetClient(), Cache: x, Fleet: w.kinds, Federated: w.kinds, Reports: board, Metrics: measures, Policies: feeds.Policies, Groups: groups,
		Queue: w.pending.queue, Workers: config.Workers, UpdatePending: w.pending.object, MemberWriter: directly, MaxInFlight: config.Pace.MaxInFlight, Units: feeds.Units, Members: w.inspector, Has: w.names.has, Opened: w.foreign.openedBy, Unjudged: w.foreign.unknownReason, Mark: w.marks.In,
		Enforcers: w.istio.drivers(), Clock: config.Clock, Events: mgr.GetEventRecorder("acp-adapter"),
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

// always runs on every replica, so that a new leader knows the fleet at once.
type always func(context.Context) error

func (f always) Start(ctx context.Context) error { return f(ctx) }

func (always) NeedLeaderElection() bool { return false }

// after is ready and then waits for known, too.
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

// triggers turns what happened in the host and in the members into the resources that have to be looked at.
type triggers struct {
	cache   *policycache.Cache
	reports *statuscache.Cache
	units   *requestqueue.Queue
	// objects and fleet are those of Cilium's policies, by which the members are judged, and carriers those of all policies.
	objects *federation.Objects
	fleet   *federation.Fleet
	istio   *istio
	kinds   federation.KindStores
	pending *pendingTracker
	names   *labelReader
	// inspector looks after the members themselves.
	inspector *memberhealth.Inspector
	// memberStatus tells how they stand.
	memberStatus *membercluster.Writer
	foreign      foreignPolicies
	// marks are those of downgrades.
	marks *federation.Marks
	log   logr.Logger
}

// onHostObject: a Federated object appeared, changed or went.
func (w *triggers) onHostObject(name, resource string) {
	w.foreign.recheck("")
	if name == "" {
		w.names.again()
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

// onMemberObject: an object in a member did, or the member itself.
func (w *triggers) onMemberObject(cluster, object string) {
	if object == "" {
		if cluster != "" {
			w.logMember(cluster)
		}
		w.cache.Join(members(w.fleet.Clusters()))
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

// members are the registered clusters as policies are compiled for them, by name.
func members(clusters []federation.Cluster) []policy.Cluster {
	out := make([]policy.Cluster, len(clusters))
	for i, c := range clusters {
		labels := c.Labels
		if labels == nil {
			labels = map[string]string{} // it has none, which is not the same as not known
		}
		out[i] = policy.Cluster{Name: c.Name, Labels: labels}
	}
	slices.SortFunc(out, func(a, b policy.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// logMember logs that a member was lost or found; the statuses say it too.
func (w *triggers) logMember(cluster string) {
	o := w.fleet.Observe(cluster, "")
	w.log.Info("Member", "member", cluster, "registered", o.Registered, "reachable", o.Reachable, "message", o.Message)
}

// onFinding: something was found in a member.
func (w *triggers) onFinding() { w.memberStatus.Wake() }

func (w *triggers) requeueAll() {
	w.pending.everything()
	w.cache.Everything(requestqueue.Bulk)
	w.units.Add(requestqueue.Bulk, w.reports.Resources()...)
	for _, o := range w.kinds.List() {
		// Also those that nothing asks for any more.
		if r := o.Resource(); r != "" {
			w.units.Add(requestqueue.Bulk, r)
		}
	}
}
