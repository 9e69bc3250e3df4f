package controllers

import (
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/direct"
	"github.com/acp-io/acp/internal/propagation/kubefed"
)

// engines makes the propagation engines of each store of objects.
type engines struct {
	*setup
	clients *direct.Clients
	metrics *direct.Metrics
}

func (s *setup) newEngines() (*engines, error) {
	metrics, err := direct.NewMetrics(s.config.Metrics)
	if err != nil {
		return nil, err
	}
	return &engines{s, &direct.Clients{Secrets: s.core.CoreV1(), Namespace: s.config.CredentialsNamespace, Clock: s.config.Pauses}, metrics}, nil
}

// members are the members as they are read for one store.
type members interface {
	propagation.Registry
	Observe(cluster, key string) federation.Observation
}

// add adds the engines of a store to the manager, and returns the store with them. urgent is what overtakes KubeFed, or nil.
// reported is called with the key of an object whose report changed.
func (e *engines) add(of string, host federation.Host, members members, urgent kubefed.DirectWriter, reported func(key string)) (propagation.Store, error) {
	adapter, err := direct.New(direct.Config{
		Of: of, Host: host, Members: members, Clients: e.clients, Revision: enforcer.Revision, Reported: reported, PerMember: e.config.ConcurrentDirectWrites,
		Log: e.mgr.GetLogger().WithName("engine-direct"), Metrics: e.metrics, Clock: e.config.Pauses,
	})
	if err != nil {
		return propagation.Store{}, err
	}
	all := propagation.NewEngines(members, kubefed.Engine{DirectWriter: urgent}, adapter)
	return propagation.Store{Host: host, Engines: all}, e.setup.add(adapter)
}
