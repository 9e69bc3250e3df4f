package controllers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/memberwriter"
	"github.com/acp-io/acp/controllers/rotation"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// setUpMembers adds the health checks of the members.
func setUpMembers(mgr manager.Manager, config Config, w *triggers) (*memberhealth.Inspector, error) {
	host, err := membership.NewHost(mgr.GetConfig(), config.KubeFedNamespace, config.CredentialsNamespace)
	if err != nil {
		return nil, err
	}
	registrations, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	x := w.cache
	keys := func() []preflight.Key {
		in := x.ClassesOnly()
		return preflight.Keys(in.ResourceClasses, in.SubjectClasses)
	}
	read := func(ctx context.Context, c federation.Cluster) preflight.Facts {
		var labels []string
		for _, k := range keys() {
			if !k.GuardedOnly {
				labels = append(labels, k.Label)
			}
		}
		slices.Sort(labels)
		return host.FactsWith(ctx, c, slices.Compact(labels))
	}
	inspector := &memberhealth.Inspector{
		Clusters: w.fleet.Clusters, Read: read, Timing: config.Checks, Log: mgr.GetLogger().WithName("members"),
		Kinds: func() []federation.Kind {
			out := []federation.Kind{federation.CiliumPolicy}
			if x.GroupsSupported() {
				out = append(out, federation.CiliumGroup)
			}
			if w.istio.carries() {
				out = append(out, federation.IstioPolicy)
			}
			return out
		},
		Keys: keys,
		Changed: func(cluster string) {
			w.foreign.recheck(cluster) // its agents may enforce other kinds of policies than before
			w.requeueAll()
		},
		AfterCheck:    w.onFinding,
		Registrations: federation.Registrations{Host: registrations, Namespace: config.KubeFedNamespace},
	}
	if err := inspector.Prepare(); err != nil {
		return nil, err
	}
	return inspector, mgr.Add(inspector)
}

// setUpRotation adds the rotation of the members' tokens.
func setUpRotation(mgr manager.Manager, config Config, w *triggers) error {
	core, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client of the host cluster: %w", err)
	}
	registrations, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client of the host cluster: %w", err)
	}
	metrics, err := rotation.NewMetrics(config.Metrics)
	if err != nil {
		return err
	}
	rotator := &rotation.Rotator{
		Clusters: w.fleet.Clusters, Secrets: core.CoreV1(), KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Registrations: federation.Registrations{Host: registrations, Namespace: config.KubeFedNamespace},
		Busy:          func() bool { return w.pending.queue.Busy(config.Clock.Now()) },
		Interval:      config.TokenChecks, Clock: config.Clock, Log: mgr.GetLogger().WithName("tokens"), Metrics: metrics,
	}
	if err := rotator.Prepare(); err != nil {
		return err
	}
	return mgr.Add(rotator)
}

// setUpMemberWriter adds the direct writes into members while KubeFed lags.
func setUpMemberWriter(mgr manager.Manager, config Config, w *triggers) (*memberwriter.Writer, error) {
	core, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	metrics, err := memberwriter.NewMetrics(config.Metrics)
	if err != nil {
		return nil, err
	}
	writer := &memberwriter.Writer{Members: w.kinds, Host: w.kinds, Secrets: core.CoreV1(), KubeFedNamespace: config.KubeFedNamespace,
		Behind: func() bool { return w.pending.behind(config.WriteLimits.MaxPending) }, Patience: config.WriteLimits.PendingTimeout, PerMember: config.DirectWrites, Log: mgr.GetLogger().WithName("direct"), Metrics: metrics}
	if err := writer.Prepare(); err != nil {
		return nil, err
	}
	return writer, mgr.Add(writer)
}

// setUpMarks adds the watch of downgrade marks.
func setUpMarks(mgr manager.Manager, host dynamic.Interface, config Config, w *triggers) (*federation.DowngradeMarks, error) {
	marks, err := federation.NewDowngradeMarks(federation.FleetConfig{Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Probing: config.Probing.Slow(), Log: mgr.GetLogger().WithName("marks"), Changed: func(_, object string) {
			if object != "" {
				w.inspector.Wake()
				w.requeueAll()
			}
		}})
	if err != nil {
		return nil, err
	}
	return marks, mgr.Add(always(marks.Run))
}
