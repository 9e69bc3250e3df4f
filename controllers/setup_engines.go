package controllers

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/direct"
	"github.com/acp-io/acp/internal/propagation/kubefed"
	"github.com/acp-io/acp/internal/propagation/ocm"
)

// Scopes of the stores of objects.
const (
	scopePolicies ocm.Scope = "policies"
	scopeGroups   ocm.Scope = "groups"
)

// engines makes the propagation engines of each store of objects.
type engines struct {
	*setup
	clients *direct.Clients
	metrics *direct.Metrics
	// works are the ManifestWorks of the members whose engine is EngineOCM, and onWork is what handles their events, by store.
	works  *ocm.Works
	onWork map[ocm.Scope]func(cluster, key string)
}

func (s *setup) newEngines() (*engines, error) {
	metrics, err := direct.NewMetrics(s.config.Metrics)
	if err != nil {
		return nil, err
	}
	e := &engines{setup: s, metrics: metrics, onWork: map[ocm.Scope]func(cluster, key string){},
		clients: &direct.Clients{Secrets: s.core.CoreV1(), Namespace: s.config.CredentialsNamespace, Clock: s.config.Pauses}}
	e.works, err = ocm.NewWorks(ocm.WorksConfig{Host: s.host, Members: s.fleet, Changed: e.workChanged, Heartbeats: s.config.Heartbeats,
		Log: s.mgr.GetLogger().WithName("engine-ocm"), Clock: s.config.Pauses})
	if err != nil {
		return nil, err
	}
	return e, s.add(manager.RunnableFunc(e.works.Run))
}

// workChanged passes an event of a ManifestWork to the store of its object, and one of an agent to all of them.
func (e *engines) workChanged(cluster, key string) {
	for scope, handle := range e.onWork {
		if key == "" {
			handle(cluster, "")
		} else if own, ok := scope.Own(key); ok {
			handle(cluster, own)
		}
	}
}

// membersOf returns the members as they are read for a kind of a store: those that the host has no token of by their agents' reports, and
// all others by the fleet.
func (e *engines) membersOf(of ocm.Scope, kind federation.Kind, fleet *federation.Fleet) ocm.Members {
	return ocm.Members{Base: fleet, Works: e.works, Of: of, Kind: kind, BaseReads: fleet.HasCredentials}
}

// members are the members as they are read for one store.
type members interface {
	propagation.Registry
	Observe(cluster, key string) federation.Observation
}

// add adds the engines of a store to the manager, and returns the store with them. urgent writes urgent objects into members of KubeFed while
// KubeFed is behind; it may be nil. reported is called with the key of an object whose report changed, and changed for events in a member that
// its agent reports.
func (e *engines) add(of ocm.Scope, host federation.Host, members members, urgent kubefed.DirectWriter, reported func(key string),
	changed func(cluster, key string)) (propagation.Store, error) {
	e.onWork[of] = changed
	adapter, err := direct.New(direct.Config{
		Of: string(of), Host: host, Members: members, Clients: e.clients, Revision: enforcer.Revision, Reported: reported,
		PerMember: e.config.ConcurrentDirectWrites, Log: e.mgr.GetLogger().WithName("engine-direct"), Metrics: e.metrics, Clock: e.config.Pauses,
	})
	if err != nil {
		return propagation.Store{}, err
	}
	agents, err := ocm.New(ocm.Config{Of: of, Host: host, Works: e.works, Read: members, Revision: enforcer.Revision, Reported: reported,
		Log: e.mgr.GetLogger().WithName("engine-ocm")})
	if err != nil {
		return propagation.Store{}, err
	}
	all := propagation.NewEngines(members, kubefed.Engine{DirectWriter: urgent}, adapter, agents)
	return propagation.Store{Host: host, Engines: all}, e.setup.add(adapter, agents)
}
