package controllers

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/membercluster"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/memberwriter"
	"github.com/acp-io/acp/controllers/rotation"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// addMemberHealth adds what concerns each member as a whole: the health checks, the rotation of tokens,
// the downgrade marks, and the reports about nodes.
func (s *setup) addMemberHealth(ready startup.Ready) (startup.Ready, error) {
	return ready, errors.Join(s.addHealthChecks(), s.addRotation(), s.addMarks(), s.addNodes())
}

// addHealthChecks adds the health checks of the members.
func (s *setup) addHealthChecks() error {
	host, err := membership.NewHost(s.mgr.GetConfig(), s.config.KubeFedNamespace, s.config.CredentialsNamespace)
	if err != nil {
		return err
	}
	keys := func() []preflight.Key {
		in := s.cache.ClassesOnly()
		return preflight.LabelKeys(in.ResourceClasses, in.SubjectClasses)
	}
	read := func(ctx context.Context, c federation.Cluster) preflight.Facts {
		return host.FactsWith(ctx, c, keys())
	}
	s.health = &memberhealth.Inspector{
		Clusters: s.fleet.Clusters, Read: read, Timing: s.config.Checks, Log: s.mgr.GetLogger().WithName("members"),
		Kinds: func() []federation.Kind {
			var out []federation.Kind
			for _, k := range objectkind.All() {
				if distributes := s.distributes[k]; distributes == nil || distributes() {
					out = append(out, k)
				}
			}
			return out
		},
		Keys: keys,
		Changed: func(cluster string) {
			s.foreign.Requeue(cluster) // its agents may enforce other kinds of policies than before
			s.units.RequeueAll()
		},
		Recorded:      s.recordedFindings,
		AfterCheck:    func() { s.status.Requeue() },
		Registrations: s.registrations(),
		Pauses:        s.config.Pauses,
	}
	if err := s.health.Prepare(); err != nil {
		return err
	}
	return s.add(s.health)
}

// recordedFindings returns the codes of the findings in the last status of a member; false if its dataplane was not read for it.
func (s *setup) recordedFindings(ctx context.Context, cluster string) (codes []string, read bool) {
	var o v1alpha1.MemberCluster
	if err := s.mgr.GetClient().Get(ctx, client.ObjectKey{Name: cluster}, &o); err != nil || o.Status.Dataplane == nil {
		return nil, false
	}
	for _, f := range o.Status.Findings {
		codes = append(codes, f.Code)
	}
	return codes, true
}

func (s *setup) registrations() federation.Registrations {
	return federation.Registrations{Host: s.host, Namespace: s.config.KubeFedNamespace}
}

// addRotation adds the rotation of the members' tokens.
func (s *setup) addRotation() error {
	metrics, err := rotation.NewMetrics(s.config.Metrics)
	if err != nil {
		return err
	}
	rotator := &rotation.Rotator{
		Clusters: s.fleet.Clusters, Secrets: s.core.CoreV1(), KubeFedNamespace: s.config.KubeFedNamespace, CredentialsNamespace: s.config.CredentialsNamespace,
		Registrations: s.registrations(),
		Busy:          func() bool { return s.backlog.Queue.Busy(s.config.Clock.Now()) },
		Interval:      s.config.TokenChecks, Clock: s.config.Clock, Log: s.mgr.GetLogger().WithName("tokens"), Metrics: metrics,
	}
	if err := rotator.Prepare(); err != nil {
		return err
	}
	return s.add(rotator)
}

// addMemberWriter adds the writer of urgent objects into members of KubeFed while KubeFed is behind.
func (s *setup) addMemberWriter() error {
	metrics, err := memberwriter.NewMetrics(s.config.Metrics)
	if err != nil {
		return err
	}
	s.writer = &memberwriter.Writer{
		Members:          s.stores,
		Host:             s.stores,
		Secrets:          s.core.CoreV1(),
		KubeFedNamespace: s.config.KubeFedNamespace,
		Behind:           func() bool { return s.backlog.KubeFedIsBehind(s.config.WriteLimits.MaxPending) },
		Timeout:          s.config.WriteLimits.PendingTimeout,
		PerMember:        s.config.ConcurrentDirectWrites,
		Pauses:           s.config.Pauses,
		Log:              s.mgr.GetLogger().WithName("memberwriter"),
		Metrics:          metrics,
	}
	if err := s.writer.Prepare(); err != nil {
		return err
	}
	return s.add(s.writer)
}

// addMarks adds the watch of downgrade marks.
func (s *setup) addMarks() error {
	var err error
	s.marks, err = federation.NewDowngradeMarks(s.slowFleetConfig("marks", func(_, object string) {
		if object != "" {
			s.health.Requeue()
			s.units.RequeueAll()
		}
	}))
	if err != nil {
		return err
	}
	return s.add(startup.EveryReplica(s.marks.Run))
}

// addNodes adds the watch of the reports of acp-node.
func (s *setup) addNodes() error {
	var err error
	s.nodes, err = federation.NewNodeReports(s.slowFleetConfig("nodes", nil), s.config.Clock, func(_ string, objects []string) {
		if objects == nil {
			s.units.RequeueAll()
			return
		}
		s.units.OnNodeReport(objects)
	})
	if err != nil {
		return err
	}
	return s.add(startup.EveryReplica(s.nodes.Run))
}

// addMemberStatus adds the writer of MemberClusters.
func (s *setup) addMemberStatus(ready startup.Ready) (startup.Ready, error) {
	inventory := &membercluster.Inventory{Cache: s.cache, Reports: s.reports, Stores: s.stores,
		Reserved: func(cluster string) []string {
			var keys []string
			for _, of := range s.reserved {
				keys = append(keys, of(cluster)...)
			}
			return keys
		}}
	s.status = &membercluster.Writer{
		Client:         s.mgr.GetClient(),
		Fleet:          s.members,
		LastCheck:      s.health.LastResult,
		Reports:        s.reports,
		Complete:       inventory.Complete,
		Orphans:        inventory.Orphans,
		Nodes:          s.nodes.In,
		Ready:          ready,
		Identities:     s.labels.Counts.Count,
		Labels:         s.labels.Counts.Labels,
		Values:         s.labels.ValuesIn,
		NoHTTP:         s.health.NoHTTP,
		SupportsGroups: s.cache.GroupsSupported,
		Clock:          s.config.Clock,
		Pauses:         s.config.Pauses,
		Interval:       s.config.StatusInterval,
		Log:            s.mgr.GetLogger().WithName("memberclusters"),
	}
	if err := s.status.Prepare(); err != nil {
		return nil, err
	}
	if s.config.Metrics != nil {
		if err := s.config.Metrics.Register(s.status); err != nil {
			return nil, fmt.Errorf("register the metrics of members: %w", err)
		}
	}
	return ready, s.add(s.status)
}
