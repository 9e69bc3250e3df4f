package controllers

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/index"
	"github.com/acp-io/acp/controllers/member"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
)

// setUpMembers adds what looks after the members themselves.
func setUpMembers(mgr manager.Manager, config Config, x *index.Index, fleet *federation.Fleet) (*member.Inspector, error) {
	host, err := membership.NewHost(mgr.GetConfig(), config.KubeFedNamespace, config.CredentialsNamespace)
	if err != nil {
		return nil, err
	}
	registrations, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of the host cluster: %w", err)
	}
	inspector, err := member.New(member.Inspector{
		Clusters: fleet.Clusters, Read: host.FactsOf, Timing: config.Looks, Log: mgr.GetLogger().WithName("members"),
		Kinds: func() []federation.Kind {
			if x.CarriesGroups() {
				return []federation.Kind{federation.CiliumPolicy, federation.CiliumGroup}
			}
			return []federation.Kind{federation.CiliumPolicy}
		},
		Registrations: federation.Registrations{Host: registrations, Namespace: config.KubeFedNamespace},
	})
	if err != nil {
		return nil, err
	}
	return inspector, mgr.Add(inspector)
}
