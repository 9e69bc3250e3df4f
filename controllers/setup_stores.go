package controllers

import (
	"errors"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/backlog"
	"github.com/acp-io/acp/controllers/istiodistribution"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/controllers/triggers"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// addStores adds the policies on the host and in the members, and the write queue for them.
func (s *setup) addStores(ready startup.Ready) (startup.Ready, error) {
	// The functions are called after the manager starts, when every field is set.
	s.units = &triggers.Units{Cache: s.cache, Reports: s.reports, Queue: s.queues.Units, Pauses: s.config.Pauses, Log: s.mgr.GetLogger().WithName("fleet"),
		RecheckForeign: func(cluster string) { s.foreign.Requeue(cluster) }, ReadLabels: func() { s.labels.Requeue() },
		FleetChanged: func() {
			s.health.Requeue()
			s.status.Requeue()
		}}
	hostObject := func(key, resource string) {
		s.units.OnHostObject(key, resource)
		s.records.Engines.Recheck("", key)
	}
	memberObject := func(cluster, key string) {
		s.units.OnMemberObject(cluster, key)
		s.records.Engines.Recheck(cluster, key)
	}
	var readers []kindReader
	for _, e := range objectkind.Policies() {
		r, err := s.newReader(e, hostObject, memberObject)
		if err != nil {
			return nil, err
		}
		readers = append(readers, r)
	}
	s.objects, s.fleet = readers[0].objects, readers[0].fleet
	var err error
	if s.engines, err = s.newEngines(); err != nil {
		return nil, err
	}
	s.addReaders(readers)
	if err := s.addMemberWriter(); err != nil {
		return nil, err
	}
	if s.records, err = s.engines.add(scopePolicies, s.stores, s.stores, s.writer, s.units.OnReport, memberObject); err != nil {
		return nil, err
	}
	s.backlog = &backlog.Tracker{Queue: writequeue.New("policies", s.config.WriteLimits), Objects: s.records, Members: s.stores, Clock: s.config.Clock}
	s.units.Fleet, s.units.Stores, s.units.Backlog = s.fleet, s.stores, s.backlog
	if err := errors.Join(s.backlog.AddToManager(s.mgr, s.queues.Units), s.backlog.ReportProgress(s.mgr, s.cache.EnqueueResourceClasses)); err != nil {
		return nil, err
	}
	for _, r := range readers {
		if ready, err = r.run(ready); err != nil {
			return nil, err
		}
	}
	return ready, nil
}

// kindReader reads the objects of a kind of policies on the host and in the members.
type kindReader struct {
	kind    federation.Kind
	objects *federation.Objects
	fleet   *federation.Fleet
	// run adds the reading to the manager.
	run func(startup.Ready) (startup.Ready, error)
	// optional is how Istio's policies are distributed, which a host may lack; nil for a kind that every host distributes.
	optional *istiodistribution.Distribution
}

// newReader returns what reads a kind of policies. hostObject and memberObject are called with keys.
func (s *setup) newReader(e objectkind.Entry, hostObject func(key, resource string), memberObject func(cluster, key string)) (kindReader, error) {
	if e.Enforcer == v1alpha1.EnforcerIstio {
		return s.newIstioReader(hostObject, memberObject)
	}
	log := s.mgr.GetLogger()
	// The empty name stands for the kind, or for the member, as a whole.
	key := func(name string) string {
		if name == "" {
			return ""
		}
		return e.Key(name)
	}
	r := kindReader{kind: e.Kind, objects: federation.NewObjects(s.host, e.Kind, log, func(name, resource string) { hostObject(key(name), resource) })}
	config := s.fleetConfig("", func(cluster, name string) {
		memberObject(cluster, key(name))
		if e.Enforcer == v1alpha1.EnforcerCilium {
			s.foreign.ClusterwideChanged(cluster) // those of others are among them
		}
	})
	config.Kind, config.Log = e.Kind, log
	var err error
	r.fleet, err = federation.NewFleet(config)
	r.run = func(ready startup.Ready) (startup.Ready, error) {
		return ready, s.add(startup.EveryReplica(r.objects.Run), startup.WhenKnown(r.objects, s.config.Pauses, r.fleet.Run))
	}
	return r, err
}

// newIstioReader returns what reads Istio's policies, which a host may lack, and whose root namespace members may name.
func (s *setup) newIstioReader(hostObject func(key, resource string), memberObject func(cluster, key string)) (kindReader, error) {
	var err error
	s.istio, err = istiodistribution.New(istiodistribution.Config{
		Fleet: s.fleetConfig("istio", nil), Pauses: s.config.Pauses, HostObject: hostObject, MemberObject: memberObject, Changed: func() {
			s.units.RequeueAll()
			s.records.Engines.Recheck("", "")
		},
		KindChanged: func() {
			s.health.Requeue()
			s.foreign.Requeue("")
		},
	})
	if err != nil {
		return kindReader{}, err
	}
	return kindReader{kind: s.istio.Kind(), objects: s.istio.Objects, fleet: s.istio.Fleet, optional: s.istio,
		run: func(ready startup.Ready) (startup.Ready, error) { return s.istio.AddToManager(s.mgr, ready) }}, nil
}

// addReaders makes the stores of the policies of what reads them.
func (s *setup) addReaders(readers []kindReader) {
	for i, r := range readers {
		members := s.engines.membersOf(scopePolicies, r.kind, r.fleet)
		s.stores = append(s.stores, federation.KindStore{Kind: r.kind, Host: r.objects, Members: members})
		if i == 0 {
			s.members = members
		}
		if r.optional != nil {
			s.distributes[r.kind] = r.optional.IsSupported
			s.observed, s.reserved = append(s.observed, r.optional.Members()), append(s.reserved, r.optional.Reserved)
			continue
		}
		s.observed = append(s.observed, members)
		s.reserved = append(s.reserved, func(cluster string) []string {
			var keys []string
			for _, name := range members.Reserved(cluster) {
				keys = append(keys, r.kind.Key(name))
			}
			return keys
		})
	}
}
