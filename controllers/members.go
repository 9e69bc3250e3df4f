package controllers

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/member"
	"github.com/acp-io/acp/controllers/rotation"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// setUpMembers adds what looks after the members themselves.
func setUpMembers(mgr manager.Manager, config Config, w *wake) (*member.Inspector, error) {
	host, err := membership.NewHost(mgr.GetConfig(), config.KubeFedNamespace, config.CredentialsNamespace)
	if err != nil {
		return nil, err
	}
	registrations, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	x := w.index
	inspector := &member.Inspector{
		Clusters: w.fleet.Clusters, Read: host.FactsOf, Timing: config.Looks, Log: mgr.GetLogger().WithName("members"),
		Kinds: func() []federation.Kind {
			if x.CarriesGroups() {
				return []federation.Kind{federation.CiliumPolicy, federation.CiliumGroup}
			}
			return []federation.Kind{federation.CiliumPolicy}
		},
		Keys: func() []preflight.Key {
			in := x.ClassesOnly()
			return preflight.Keys(in.ResourceClasses, in.SubjectClasses)
		},
		Changed:       func(string) { w.everything() },
		Registrations: federation.Registrations{Host: registrations, Namespace: config.KubeFedNamespace},
	}
	if err := inspector.Prepare(); err != nil {
		return nil, err
	}
	return inspector, mgr.Add(inspector)
}

// setUpRotation adds what keeps the members' tokens young.
func setUpRotation(mgr manager.Manager, config Config, w *wake) error {
	core, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client of the host cluster: %w", err)
	}
	registrations, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client of the host cluster: %w", err)
	}
	rotator := &rotation.Rotator{
		Clusters: w.fleet.Clusters, Secrets: core.CoreV1(), KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Registrations: federation.Registrations{Host: registrations, Namespace: config.KubeFedNamespace},
		Interval:      config.TokenChecks, Clock: config.Clock, Log: mgr.GetLogger().WithName("tokens"), Metrics: rotation.SharedMetrics(),
	}
	if err := rotator.Prepare(); err != nil {
		return err
	}
	return mgr.Add(rotator)
}
