package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/cilium/cilium/pkg/crypto/certificatemanager"
	"github.com/cilium/cilium/pkg/endpoint/regeneration"
	envoypolicy "github.com/cilium/cilium/pkg/envoy/policy"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/identity/identitymanager"
	ipcachetypes "github.com/cilium/cilium/pkg/ipcache/types"
	"github.com/cilium/cilium/pkg/k8s"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	slimnetworkingv1 "github.com/cilium/cilium/pkg/k8s/slim/k8s/api/networking/v1"
	"github.com/cilium/cilium/pkg/option"
	ciliumpolicy "github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/policy/api"
	policytypes "github.com/cilium/cilium/pkg/policy/types"
	policyutils "github.com/cilium/cilium/pkg/policy/utils"
	"github.com/cilium/cilium/pkg/u8proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policyv1alpha2 "sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// configure sets the configuration of an agent with L7 proxy, both families and every feature that the rendering needs.
var configure = sync.OnceFunc(func() {
	option.Config.EnableL7Proxy, option.Config.EnableICMPRules = true, true
	option.Config.EnableIPv4, option.Config.EnableIPv6 = true, true
	option.Config.EnableSCTP = true
	option.Config.UnsafeDaemonConfigOption.AllowLocalhost = option.AllowLocalhostAlways
	api.InitEntities(Here)
})

// engine is Cilium's policy repository of one agent. It is not safe for concurrent use.
type engine struct {
	log      *slog.Logger
	repo     *ciliumpolicy.Repository
	compiled map[identity.NumericIdentity]*endpointPolicy
}

// endpointPolicy is the policy that the datapath of one endpoint would get.
type endpointPolicy struct {
	policy  *ciliumpolicy.EndpointPolicy
	managed bool
}

// newEngine adds all identities at once, because each later change would be compared with every selector.
func newEngine(ids identity.IdentityMap) *engine {
	configure()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	l7 := envoypolicy.NewEnvoyL7RulesTranslator(log, certificatemanager.NewMockSecretManagerInline())
	repo := ciliumpolicy.NewPolicyRepository(log, ids, nil, l7, identitymanager.NewIDManager(log), nil)
	repo.UpdateIdentities(ids, nil)
	return &engine{log: log, repo: repo, compiled: map[identity.NumericIdentity]*endpointPolicy{}}
}

// set adds a clusterwide policy as an agent does: Cilium's own parser may reject it.
func (e *engine) set(name string, spec map[string]any) error {
	return e.take(map[string]any{"kind": "CiliumClusterwideNetworkPolicy", "metadata": map[string]any{"name": name}, "spec": spec})
}

// take adds a policy of any kind as an agent does: Cilium's own parser may reject it.
func (e *engine) take(object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &meta); err != nil {
		return fmt.Errorf("read a policy: %w", err)
	}
	var entries policytypes.PolicyEntries
	kind := ipcachetypes.ResourceKindCCNP
	switch meta.Kind {
	case "CiliumClusterwideNetworkPolicy":
		entries, err = parse(text, func(p *ciliumv2.CiliumClusterwideNetworkPolicy) (api.Rules, error) { return p.Parse(e.log, Here) })
	case "CiliumNetworkPolicy":
		kind = ipcachetypes.ResourceKindCNP
		entries, err = parse(text, func(p *ciliumv2.CiliumNetworkPolicy) (api.Rules, error) { return p.Parse(e.log, Here) })
	case "NetworkPolicy":
		kind = ipcachetypes.ResourceKindNetpol
		var p slimnetworkingv1.NetworkPolicy
		if err = json.Unmarshal(text, &p); err == nil {
			entries, err = k8s.ParseNetworkPolicy(e.log, Here, &p)
		}
	case "ClusterNetworkPolicy":
		kind = ipcachetypes.ResourceKindKCNP
		var p policyv1alpha2.ClusterNetworkPolicy
		if err = json.Unmarshal(text, &p); err == nil {
			entries, err = k8s.ParseClusterNetworkPolicy(e.log, Here, &p)
		}
	default:
		return fmt.Errorf("policy %s has the kind %q", meta.Name, meta.Kind)
	}
	if err != nil {
		return fmt.Errorf("policy %s is refused by Cilium: %w", meta.Name, err)
	}
	e.repo.ReplaceByResource(entries, ipcachetypes.NewResourceID(kind, meta.Namespace, meta.Name))
	return nil
}

// parse parses one of Cilium's own kinds.
func parse[T any](text []byte, rules func(*T) (api.Rules, error)) (policytypes.PolicyEntries, error) {
	p := new(T)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	parsed, err := rules(p)
	if err != nil {
		return nil, err
	}
	return policyutils.RulesToPolicyEntries(parsed), nil
}

// verdict is the engine's result for a connection.
type verdict struct {
	Pass bool
	// Proxied reports whether a proxy filters the requests of the connection.
	Proxied bool
	// Requests are those that the proxy then lets through, in the order of requests.
	Requests [maxRequests]bool
}

func (e *engine) decide(from, to *identity.Identity, proto u8proto.U8proto, port uint16) (verdict, error) {
	p := e.compiled[to.ID]
	if p == nil {
		var err error
		if p, err = e.compile(to); err != nil {
			return verdict{}, err
		}
		e.compiled[to.ID] = p
	}
	if !p.managed {
		return verdict{Pass: true}, nil
	}
	entry, _, found := p.policy.Lookup(ciliumpolicy.IngressKey().WithIdentity(from.ID).WithPortProto(proto, port))
	if !found || entry.IsDeny() {
		return verdict{}, nil
	}
	v := verdict{Pass: true, Proxied: entry.IsRedirectEntry()}
	for i, r := range requests {
		v.Requests[i] = v.Proxied && p.passesProxy(from, proto, port, r)
	}
	return v, nil
}

func (e *engine) compile(to *identity.Identity) (*endpointPolicy, error) {
	selected, _, err := e.repo.ComputeSelectorPolicy(to)
	if err != nil {
		return nil, fmt.Errorf("compute the policy of identity %d: %w", to.ID, err)
	}
	// No proxy runs here: every redirect uses one port.
	distilled := selected.DistillPolicy(e.log, endpointOwner{}, map[string]uint16{ciliumpolicy.FallbackRedirectID: ^uint16(0)})
	// It stays attached as long as the repository exists, so that its selectors keep their identities.
	if err := distilled.Ready(); err != nil {
		return nil, fmt.Errorf("distil the policy of identity %d: %w", to.ID, err)
	}
	return &endpointPolicy{policy: distilled, managed: distilled.SelectorPolicy.IngressPolicyEnabled}, nil
}

// endpointOwner is an endpoint without named ports and policy map.
type endpointOwner struct{}

func (endpointOwner) GetID() uint64                                      { return 0 }
func (endpointOwner) GetIngressNamedPort(string, u8proto.U8proto) uint16 { return 0 }
func (endpointOwner) PolicyDebug(string, ...any)                         {}
func (endpointOwner) IsHost() bool                                       { return false }
func (endpointOwner) PreviousMapStateSizes() ciliumpolicy.MapStateSizes {
	return ciliumpolicy.MapStateSizes{}
}
func (endpointOwner) RegenerateIfAlive(*regeneration.ExternalRegenerationMetadata) <-chan bool {
	done := make(chan bool)
	close(done)
	return done
}
