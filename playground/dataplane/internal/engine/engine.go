// Package engine decides connections to the endpoints of one cluster with Cilium's own policy engine.
//
// The package contains the policy repository and the policies computed from it. It does not read from API servers and does not
// create flows.
package engine

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/cilium/cilium/pkg/crypto/certificatemanager"
	envoypolicy "github.com/cilium/cilium/pkg/envoy/policy"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/identity/identitymanager"
	ipcachetypes "github.com/cilium/cilium/pkg/ipcache/types"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/option"
	"github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/policy/api"
	policyutils "github.com/cilium/cilium/pkg/policy/utils"
	"github.com/cilium/cilium/pkg/u8proto"
)

// Engine is safe for concurrent use.
type Engine struct {
	cluster string
	log     *slog.Logger

	mu       sync.Mutex
	repo     *policy.Repository
	groups   groups
	compiled map[identity.NumericIdentity]*compiled
	external map[identity.NumericIdentity]*identity.Identity
	byAddr   map[string]*identity.Identity
	nextExt  uint32
}

var configureOnce sync.Once

// New returns the engine of a cluster. Cilium keeps part of its configuration in package variables, so one process can contain only
// one engine.
func New(cluster string) *Engine {
	configureOnce.Do(func() {
		option.Config.EnableL7Proxy, option.Config.EnableICMPRules = true, true
		option.Config.EnableIPv4, option.Config.EnableIPv6 = true, true
		option.Config.UnsafeDaemonConfigOption.AllowLocalhost = option.AllowLocalhostAlways
		api.InitEntities(cluster)
	})
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ids := identity.IdentityMap{}
	for id, lbls := range reservedIdentities() {
		ids[id] = lbls
	}
	l7 := envoypolicy.NewEnvoyL7RulesTranslator(log, certificatemanager.NewMockSecretManagerInline())
	repo := policy.NewPolicyRepository(log, ids, nil, l7, identitymanager.NewIDManager(log), nil)
	repo.UpdateIdentities(ids, nil)
	return &Engine{
		cluster: cluster, log: log, repo: repo, groups: groups{},
		compiled: map[identity.NumericIdentity]*compiled{},
		external: map[identity.NumericIdentity]*identity.Identity{}, byAddr: map[string]*identity.Identity{},
	}
}

// reservedIdentities returns the identities that an agent has from the start and that can be sources here.
func reservedIdentities() identity.IdentityMap {
	out := identity.IdentityMap{}
	for _, id := range []identity.NumericIdentity{
		identity.ReservedIdentityHost, identity.ReservedIdentityWorld, identity.ReservedIdentityWorldIPv4,
		identity.ReservedIdentityWorldIPv6, identity.ReservedIdentityRemoteNode, identity.ReservedIdentityHealth,
	} {
		if known := identity.LookupReservedIdentity(id); known != nil {
			out[id] = known.LabelArray
		}
	}
	return out
}

// UpdateIdentities adds and deletes identities.
func (e *Engine) UpdateIdentities(added, deleted identity.IdentityMap) {
	if len(added)+len(deleted) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updateIdentities(added, deleted)
}

func (e *Engine) updateIdentities(added, deleted identity.IdentityMap) {
	var users sync.WaitGroup
	e.repo.GetSelectorCache().UpdateIdentities(added, deleted, &users)
	users.Wait()
	e.repo.UpdateIdentities(added, deleted)
	clear(e.compiled) // any policy may select a new peer
}

// SetPolicy adds or replaces a policy. When Cilium's parser rejects the policy, SetPolicy returns the error and changes nothing, as
// on a real agent: a new policy is not enforced, and the previous content of a changed policy stays enforced.
func (e *Engine) SetPolicy(ccnp *ciliumv2.CiliumClusterwideNetworkPolicy) error {
	rules, err := ccnp.DeepCopy().Parse(e.log, e.cluster) // it changes what it parses
	if err != nil {
		return fmt.Errorf("policy %s is refused: %w", ccnp.Name, err)
	}
	entries := policyutils.RulesToPolicyEntries(rules)
	e.mu.Lock()
	defer e.mu.Unlock()
	affected, _, _ := e.repo.ReplaceByResource(entries, resourceID(ccnp.Name))
	for id := range affected.Members() {
		delete(e.compiled, id)
	}
	return nil
}

// DeletePolicy removes a policy.
func (e *Engine) DeletePolicy(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	affected, _, _ := e.repo.ReplaceByResource(nil, resourceID(name))
	for id := range affected.Members() {
		delete(e.compiled, id)
	}
}

func resourceID(name string) ipcachetypes.ResourceID {
	return ipcachetypes.NewResourceID(ipcachetypes.ResourceKindCCNP, "", name)
}

// Connection is one connection to an endpoint of this cluster.
type Connection struct {
	From, To *identity.Identity
	Protocol u8proto.U8proto
	Port     uint16
}

// Decide returns the decision of the dataplane about a connection.
func (e *Engine) Decide(c Connection) (Decision, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.compiled[c.To.ID]
	if p == nil {
		var err error
		if p, err = e.compile(c.To); err != nil {
			return Decision{}, err
		}
		e.compiled[c.To.ID] = p
	}
	return p.decide(c), nil
}

func (e *Engine) compile(to *identity.Identity) (*compiled, error) {
	selected, revision, err := e.repo.ComputeSelectorPolicy(to)
	if err != nil {
		return nil, fmt.Errorf("compute the policy of identity %d: %w", to.ID, err)
	}
	// No proxy runs here, so every redirect uses the same port.
	endpoint := selected.DistillPolicy(e.log, owner{}, map[string]uint16{policy.FallbackRedirectID: ^uint16(0)})
	err = endpoint.Ready()
	endpoint.Detach(e.log)
	selected.Supersede()
	if err != nil {
		return nil, fmt.Errorf("distil the policy of identity %d: %w", to.ID, err)
	}
	return &compiled{
		policy: endpoint, revision: revision, enabled: endpoint.SelectorPolicy.IngressPolicyEnabled,
		cache: map[policy.Key]Decision{},
	}, nil
}

// External returns the identity of an address outside the fleet, with the labels of the CIDR groups that contain it.
func (e *Engine) External(addr string) (*identity.Identity, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id := e.byAddr[addr]; id != nil {
		return id, nil
	}
	lbls, err := e.groups.labelsOf(addr)
	if err != nil {
		return nil, err
	}
	id := identity.NewIdentityFromLabelArray(identity.IdentityScopeLocal+identity.NumericIdentity(e.nextExt+1), lbls)
	e.nextExt++
	e.byAddr[addr], e.external[id.ID] = id, id
	e.updateIdentities(identity.IdentityMap{id.ID: lbls}, nil)
	return id, nil
}

// SetGroup adds or replaces a CIDR group. Addresses outside the fleet get new identities, because the labels of an identity never
// change.
func (e *Engine) SetGroup(g *ciliumv2.CiliumCIDRGroup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.groups.set(g)
	e.forgetExternal()
}

// DeleteGroup removes a CIDR group. Addresses outside the fleet get new identities.
func (e *Engine) DeleteGroup(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.groups, name)
	e.forgetExternal()
}

func (e *Engine) forgetExternal() {
	gone := identity.IdentityMap{}
	for id, known := range e.external {
		gone[id] = known.LabelArray
	}
	clear(e.external)
	clear(e.byAddr)
	if len(gone) > 0 {
		e.updateIdentities(nil, gone)
	}
}

// LabelsOf returns labels in the form that Hubble shows in flows.
func LabelsOf(id *identity.Identity) []string {
	out := make([]string, 0, len(id.LabelArray))
	for _, l := range id.LabelArray {
		out = append(out, show(l))
	}
	return out
}

func show(l labels.Label) string {
	if l.Value == "" {
		return l.Source + ":" + l.Key
	}
	return l.Source + ":" + l.Key + "=" + l.Value
}
