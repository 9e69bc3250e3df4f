// Package controllers wires the controllers of the adapter: one policy cache, one view of the federated objects and of
// the members, one status cache, and the triggers between them. It contains no other logic.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/accesscontrolpolicy"
	"github.com/acp-io/acp/controllers/approvalpolicy"
	"github.com/acp-io/acp/controllers/backlog"
	"github.com/acp-io/acp/controllers/class"
	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/foreignpolicies"
	"github.com/acp-io/acp/controllers/istiodistribution"
	"github.com/acp-io/acp/controllers/membercluster"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/memberwriter"
	"github.com/acp-io/acp/controllers/metrics"
	"github.com/acp-io/acp/controllers/organization"
	"github.com/acp-io/acp/controllers/podlabels"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/protectedresource"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/controllers/triggers"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/ocm"
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
	// FirstStatusDelay bounds how long the first status of a policy or resource is deferred while it is propagated; zero
	// means statusfields.DefaultFirstDelay.
	FirstStatusDelay time.Duration
	// Metrics is the registry of the metrics; nil disables them.
	Metrics prometheus.Registerer
	// Heartbeats configures how a work agent is detected that does not work; the zero value means ocm.DefaultHeartbeats.
	Heartbeats ocm.Heartbeats
	// TokenChecks is the time between two checks of the members' tokens; zero means rotation.DefaultInterval.
	TokenChecks time.Duration
	// WriteLimits bounds what KubeFed has to propagate to each member at a time; the zero value means
	// writequeue.DefaultLimits.
	WriteLimits writequeue.Limits
	// ConcurrentDirectWrites is the number of objects that the adapter itself writes concurrently into each member: all objects in a member
	// of the direct engine, and urgent ones in a member of KubeFed while KubeFed is behind; 0 means memberwriter.DefaultPerMember.
	ConcurrentDirectWrites int
	// Workers is the number of resources that are reconciled concurrently; 0 means protectedresource.DefaultWorkers.
	Workers int
	// Clock is the clock; nil means the real one.
	Clock clock.WithTicker
	// Pauses is the clock of the time between two readings or writes of what changes often; nil means the real one. Tests
	// that stop Clock need it, because these pauses go on then.
	Pauses clock.WithTicker
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
	if config.Pauses == nil {
		config.Pauses = clock.RealClock{}
	}
	if config.WriteLimits == (writequeue.Limits{}) {
		config.WriteLimits = writequeue.DefaultLimits
	}
	if config.FirstStatusDelay == 0 {
		config.FirstStatusDelay = statusfields.DefaultFirstDelay
	}
	s, err := newSetup(mgr, config)
	if err != nil {
		return err
	}
	ready, err := s.cache.Listen(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	// Each step adds what it waits for to ready. A controller begins when everything that its decisions need is known.
	for _, step := range []func(startup.Ready) (startup.Ready, error){
		s.addStores, s.addMemberHealth, s.addPodLabels, s.addForeignPolicies, s.addClock, s.addGroups, s.addMemberStatus, s.addControllers,
	} {
		if ready, err = step(ready); err != nil {
			return err
		}
	}
	return nil
}

// setup contains what the controllers share while they are wired.
type setup struct {
	mgr    manager.Manager
	config Config
	// host and core are clients of the host cluster.
	host dynamic.Interface
	core kubernetes.Interface

	cache   *policycache.Cache
	queues  policycache.Queues
	reports *statuscache.Cache
	// answers counts what the members' API servers answer to everything that reads them.
	answers *federation.Answers

	// objects and fleet are those of the first kind of policies, Cilium's, and istio those of Istio's. stores combines all kinds of policies.
	objects *federation.Objects
	fleet   *federation.Fleet
	istio   *istiodistribution.Distribution
	stores  federation.KindStores
	// members are the members as they are read for the first kind of policies, also by the reports of work agents.
	members ocm.Members
	// observed are the members as they are read for each kind of policies.
	observed []startup.Fleet
	// reserved return the keys of a member's objects with ACP's reserved name or label, by kind of policies.
	reserved []func(cluster string) []string
	// distributes reports whether the host distributes a kind to the members; a kind that is not in it is always distributed.
	distributes map[federation.Kind]func() bool
	// records are the stores with the engines that distribute the objects to the members.
	records propagation.Store
	engines *engines
	backlog *backlog.Tracker
	units   *triggers.Units

	health  *memberhealth.Inspector
	writer  *memberwriter.Writer
	marks   *federation.DowngradeMarks
	nodes   *federation.NodeReports
	labels  *podlabels.Reader
	foreign foreignpolicies.Detectors
	groups  *externalgroup.Reconciler
	// groupObjects are the address groups on the host.
	groupObjects *federation.Objects
	status       *membercluster.Writer
}

func newSetup(mgr manager.Manager, config Config) (*setup, error) {
	host, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	core, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	s := &setup{mgr: mgr, config: config, host: host, core: core, queues: policycache.NewQueues(config.Clock), reports: statuscache.New(),
		answers: federation.NewAnswers(), distributes: map[federation.Kind]func() bool{}}
	s.cache = policycache.New(s.queues)
	return s, nil
}

// fleetConfig returns the configuration of what reads the members for one purpose.
func (s *setup) fleetConfig(purpose string, changed func(cluster, object string)) federation.FleetConfig {
	return federation.FleetConfig{
		Host: s.host, KubeFedNamespace: s.config.KubeFedNamespace, CredentialsNamespace: s.config.CredentialsNamespace, Revision: enforcer.Revision,
		Probing: s.config.Probing, Answers: s.answers, Log: s.mgr.GetLogger().WithName(purpose), Changed: changed,
	}
}

// slowFleetConfig returns the configuration of what reads the members for a purpose that is not urgent.
func (s *setup) slowFleetConfig(purpose string, changed func(cluster, object string)) federation.FleetConfig {
	c := s.fleetConfig(purpose, changed)
	c.Probing = c.Probing.Slow()
	return c
}

func (s *setup) add(runnables ...manager.Runnable) error {
	for _, r := range runnables {
		if err := s.mgr.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// addPodLabels adds the reading of the labels of the members' pods.
func (s *setup) addPodLabels(ready startup.Ready) (startup.Ready, error) {
	var err error
	s.labels, err = podlabels.New(podlabels.Config{Cache: s.cache, Objects: s.objects, MeshesChanged: s.units.RequeueAll, Pauses: s.config.Pauses,
		Fleet: s.slowFleetConfig("names", func(cluster, _ string) { s.foreign.Requeue(cluster) })})
	if err != nil {
		return nil, err
	}
	return s.labels.AddToManager(s.mgr, ready)
}

// addForeignPolicies adds the evaluation of policies that ACP does not manage.
func (s *setup) addForeignPolicies(ready startup.Ready) (startup.Ready, error) {
	var err error
	s.foreign, err = foreignpolicies.AddToManager(
		s.mgr,
		foreignpolicies.Config{Fleet: s.slowFleetConfig("foreignpolicies", nil), Cache: s.cache, Objects: s.objects,
			Members: s.fleet, Istio: s.istio, PodLabels: s.labels, OwnGroup: s.isOwnGroup,
			IgnoresClusterNetworkPolicies: s.health.IgnoresClusterNetworkPolicies, Changed: s.units.RequeueAll, Pauses: s.config.Pauses},
	)
	return ready, err
}

// isOwnGroup reports whether the host has an address group with that name, or whether that is not known yet.
func (s *setup) isOwnGroup(name string) bool {
	listed, _ := s.groupObjects.State()
	_, known := s.groupObjects.Get(name)
	return !listed || known
}

// addClock adds what enqueues units when a statement begins or ends.
func (s *setup) addClock(ready startup.Ready) (startup.Ready, error) {
	return ready, s.add(&policycache.Clock{Cache: s.cache, Time: s.config.Clock, Ready: ready})
}

// addGroups adds the controller of groups, with its own view of the members: a member that cannot be read for groups must
// not count as unreachable for policies. The returned Ready also waits until it is known whether the host can distribute
// groups, because before that a statement that needs one would be refused, and for the members and the write queues.
func (s *setup) addGroups(ready startup.Ready) (startup.Ready, error) {
	g := &triggers.Groups{Units: s.units, Queue: s.queues.Groups, Known: make(chan struct{})}
	var records propagation.Store
	g.Objects = federation.NewObjects(s.host, federation.CiliumGroup, s.mgr.GetLogger(), func(name, subject string) {
		g.OnHostObject(name, subject)
		records.Engines.Recheck("", name)
	})
	s.groupObjects = g.Objects
	config := s.fleetConfig("groups", func(cluster, object string) {
		g.OnMemberObject(cluster, object)
		records.Engines.Recheck(cluster, object)
	})
	config.Kind = federation.CiliumGroup
	fleet, err := federation.NewFleet(config)
	if err != nil {
		return nil, err
	}
	read := s.engines.membersOf(scopeGroups, federation.CiliumGroup, fleet)
	reported := func(name string) { g.OnMemberObject("", name) }
	if records, err = s.engines.add(scopeGroups, g.Objects, read, nil, reported, config.Changed); err != nil {
		return nil, err
	}
	g.Backlog = &backlog.Tracker{Queue: writequeue.New("groups", s.config.WriteLimits), Objects: records, Members: read, Clock: s.config.Clock}
	if err := g.Backlog.AddToManager(s.mgr, s.queues.Groups); err != nil {
		return nil, err
	}
	if err := s.add(startup.EveryReplica(g.Objects.Run), startup.EveryReplica(fleet.Run)); err != nil {
		return nil, err
	}
	checked := func() bool { return !s.health.Pending() && !s.labels.Pending() }
	s.distributes[config.Kind] = s.cache.GroupsSupported
	ready = startup.AfterMembers(startup.After(ready, g.Known), s.config.Pauses, checked, append(s.observed, read, s.foreign.Cilium())...)
	ready = backlog.AfterUpdate(ready, s.config.Pauses, s.backlog, g.Backlog)
	s.groups = &externalgroup.Reconciler{Cache: s.cache, Fleet: read, Federated: records, Engines: records.Engines,
		Render: cilium.RenderGroup, Effect: cilium.GroupEffectOf, Queue: g.Backlog.Queue, PendingWrites: g.Backlog.Update, Subjects: s.queues.Groups,
		Clock: s.config.Clock}
	return ready, s.groups.SetupWithManager(s.mgr, ready)
}

// addControllers adds the controllers of units, policies and classes.
func (s *setup) addControllers(ready startup.Ready) (startup.Ready, error) {
	unitMetrics, err := metrics.New(s.config.Metrics)
	if err != nil {
		return nil, err
	}
	if err := metrics.RegisterClock(s.config.Metrics, s.config.ClockLag); err != nil {
		return nil, err
	}
	nodes := metrics.Nodes{Clusters: s.fleet.Clusters, In: s.nodes.In, Reports: s.reports, Now: s.config.Clock.Now}
	if err := nodes.Register(s.config.Metrics); err != nil {
		return nil, err
	}
	if err := (metrics.Authorities{Clusters: s.fleet.Clusters}).Register(s.config.Metrics); err != nil {
		return nil, err
	}
	client, config := s.mgr.GetClient(), &s.config
	units := &protectedresource.Reconciler{
		Client:           client,
		Cache:            s.cache,
		Fleet:            s.stores,
		Federated:        s.records,
		Reports:          s.reports,
		Metrics:          unitMetrics,
		Policies:         s.queues.Policies,
		Groups:           s.groups,
		Queue:            s.backlog.Queue,
		Workers:          config.Workers,
		UpdatePending:    s.backlog.Update,
		Engines:          s.records.Engines,
		MaxInFlight:      config.WriteLimits.MaxInFlight,
		FirstStatusDelay: config.FirstStatusDelay,
		Units:            s.queues.Units,
		Members:          s.health,
		Has:              s.labels.Has,
		OpenedBy:         s.foreign.OpenedBy,
		GroupInClass:     s.foreign.GroupInClass,
		ForeignUnknown:   s.foreign.UnknownReason,
		Mark:             s.marks.In,
		Nodes:            s.nodes.In,
		Enforcers:        &dataplane.Enforcers{NoHTTP: s.health.NoHTTP, Changed: s.units.RequeueAll, IstioSupport: s.istio.Problem},
		Clock:            config.Clock,
		Tracer:           config.Tracer,
		Events:           protectedresource.LimitEvents(s.mgr.GetEventRecorder("acp-adapter")),
	}
	policies := &accesscontrolpolicy.Reconciler{
		Client: client, Cache: s.cache, Reports: s.reports, Federated: s.records, Units: s.queues.Units, Clock: config.Clock,
		FirstStatusDelay: config.FirstStatusDelay,
	}
	s.groups.InUse = units.GroupInUse
	if err := units.SetupWithManager(s.mgr, ready); err != nil {
		return nil, err
	}
	if err := policies.SetupWithManager(s.mgr, s.queues.Policies, ready); err != nil {
		return nil, err
	}
	if err := approvalpolicy.Setup(s.mgr, config.Clock); err != nil {
		return nil, err
	}
	if err := organization.Setup(s.mgr, config.Clock, s.cache.EnqueueResourceClasses); err != nil {
		return nil, err
	}
	rollouts := &class.Rollouts{Cache: s.cache, Reports: s.reports, Fleet: s.fleet, Metrics: unitMetrics, Events: units.Events}
	return ready, class.Setup(s.mgr, s.cache, s.queues, config.Clock, s.backlog.Queue.Waiting, rollouts, ready)
}
