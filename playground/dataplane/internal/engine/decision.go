package engine

import (
	"slices"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/cilium/cilium/pkg/endpoint/regeneration"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/k8s/apis/cilium.io/utils"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/u8proto"
)

// Outcome is the outcome of a connection.
type Outcome int

const (
	// NoPolicy means that no policy selects the endpoint: every connection passes, and no verdict is reported.
	NoPolicy Outcome = iota
	// Allowed means that a policy allows the connection, or that no policy enabled default deny.
	Allowed
	// DefaultDenied means that default deny is enabled and no policy allows the connection.
	DefaultDenied
	// Denied means that a deny rule matches.
	Denied
)

// MatchType is the specificity of the matched policy entry, in the numbers of Cilium's datapath.
type MatchType uint32

// These are the match types of Cilium's datapath.
const (
	// MatchNone means that no entry matches.
	MatchNone MatchType = 0
	// MatchL3 means that an entry for the identity and all ports matches.
	MatchL3 MatchType = 1
	// MatchL3L4 means that an entry for the identity and the port matches.
	MatchL3L4 MatchType = 2
	// MatchL4 means that an entry for the port and all identities matches.
	MatchL4 MatchType = 3
	// MatchAll means that an entry for all identities and all ports matches.
	MatchAll MatchType = 4
	// MatchL3Proto means that an entry for the identity and the protocol matches.
	MatchL3Proto MatchType = 5
	// MatchProtoOnly means that an entry for the protocol and all identities matches.
	MatchProtoOnly MatchType = 6
)

// Decision is the decision of the dataplane about one connection.
type Decision struct {
	Outcome Outcome
	// Redirected reports whether an L7 proxy would handle the connection.
	Redirected bool
	Match      MatchType
	// Policies contains the policies that allow or deny the connection, with their log values. It is empty for NoPolicy and
	// DefaultDenied.
	Policies []*flowpb.Policy
	Log      []string
}

// compiled is the policy of one destination identity.
type compiled struct {
	policy   *policy.EndpointPolicy
	revision uint64
	enabled  bool
	cache    map[policy.Key]Decision
}

func (p *compiled) decide(c Connection) Decision {
	if !p.enabled {
		return Decision{Outcome: NoPolicy}
	}
	key := policy.IngressKey().WithIdentity(c.From.ID).WithPortProto(c.Protocol, c.Port)
	if d, ok := p.cache[key]; ok {
		return d
	}
	d := p.lookup(key)
	p.cache[key] = d
	return d
}

func (p *compiled) lookup(key policy.Key) Decision {
	entry, meta, found := p.policy.Lookup(key)
	if !found {
		return Decision{Outcome: DefaultDenied}
	}
	d := Decision{Outcome: Allowed, Redirected: entry.IsRedirectEntry(), Match: p.match(key, entry)}
	if entry.IsDeny() {
		d.Outcome, d.Redirected = Denied, false
	}
	for model := range labels.ModelsFromLabelArrayListString(meta.LabelArrayListString()) {
		d.Policies = append(d.Policies, utils.GetPolicyFromLabels(model, p.revision))
	}
	d.Log = slices.DeleteFunc(meta.Log(), func(s string) bool { return s == "" })
	return d
}

// match returns the specificity of the entry that the lookup returned, because the lookup does not return it.
func (p *compiled) match(key policy.Key, entry policy.MapStateEntry) MatchType {
	best := MatchNone
	for k, e := range p.policy.Entries() {
		sameSource := k.Identity == key.Identity || k.Identity == identity.IdentityUnknown
		if k.TrafficDirection() != key.TrafficDirection() || !sameSource || e != entry || !covers(k, key) {
			continue
		}
		m := matchOf(k)
		if best == MatchNone || specificity(m) > specificity(best) {
			best = m
		}
	}
	return best
}

func covers(k, key policy.Key) bool {
	if k.Nexthdr == 0 {
		return true
	}
	if k.Nexthdr != key.Nexthdr {
		return false
	}
	return k.DestPort == 0 || (k.DestPort <= key.DestPort && key.DestPort <= k.EndPort())
}

func matchOf(k policy.Key) MatchType {
	any3 := k.Identity == identity.IdentityUnknown
	switch {
	case any3 && k.Nexthdr == 0:
		return MatchAll
	case any3 && k.DestPort == 0:
		return MatchProtoOnly
	case any3:
		return MatchL4
	case k.Nexthdr == 0:
		return MatchL3
	case k.DestPort == 0:
		return MatchL3Proto
	default:
		return MatchL3L4
	}
}

func specificity(m MatchType) int {
	return slices.Index([]MatchType{MatchAll, MatchProtoOnly, MatchL3, MatchL3Proto, MatchL4, MatchL3L4}, m)
}

// owner is the endpoint that Cilium's policy code requires. It has no named ports and no policy map.
type owner struct{}

func (owner) GetID() uint64                                      { return 0 }
func (owner) GetIngressNamedPort(string, u8proto.U8proto) uint16 { return 0 }
func (owner) PolicyDebug(string, ...any)                         {}
func (owner) IsHost() bool                                       { return false }
func (owner) PreviousMapStateSizes() policy.MapStateSizes        { return policy.MapStateSizes{} }
func (owner) RegenerateIfAlive(*regeneration.ExternalRegenerationMetadata) <-chan bool {
	done := make(chan bool)
	close(done)
	return done
}
