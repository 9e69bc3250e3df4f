package foreignpolicy

import (
	"slices"
	"sync/atomic"
)

// tier is the order in which Cilium looks at policies.
type tier uint8

const (
	adminTier tier = iota
	normalTier
	baselineTier
)

// verdict is what a rule says about the connections that it matches.
type verdict uint8

const (
	allow verdict = iota
	deny
	// pass goes on with the next tier.
	pass
)

// ports is a range of ports of a protocol, or of types of ICMP.
type ports struct {
	// protocol in upper letters; "": every protocol, with all its ports.
	protocol    string
	first, last uint16
}

func (p ports) includes(protocol string, port uint16) bool {
	return p.protocol == "" || p.protocol == protocol && p.first <= port && port <= p.last
}

// connections are those that a rule is about, from each of its peers.
type connections struct {
	ports []ports
	// requests are the HTTP requests that are let through, as they are written; nil: the whole connection.
	requests []string
	// doubt: it is not known to which ports this applies; ports are those to which it may apply.
	doubt bool
}

// rule is one rule about ingress.
type rule struct {
	policy  *Policy
	index   int
	tier    tier
	order   float64
	verdict verdict
	// closes: a workload that the rule selects refuses what nothing lets in.
	closes  bool
	subject selector
	peers   []selector
	grants  []connections
}

// Policy is what a policy in a member says about ingress.
type Policy struct {
	Kind, Namespace, Name string
	rules                 []*rule
	id                    uint64
	// groups: some rule names groups of addresses.
	groups bool
}

var policies atomic.Uint64

func newPolicy(kind, namespace, name string) *Policy {
	return &Policy{Kind: kind, Namespace: namespace, Name: name, id: policies.Add(1)}
}

// String names the policy for people.
func (p *Policy) String() string {
	if p.Namespace == "" {
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// Opens tells whether the policy lets anybody in at all.
func (p *Policy) Opens() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.verdict == allow && len(r.peers) > 0 && len(r.grants) > 0 })
}

// Closes tells whether the policy makes the workloads that it selects refuse what nothing lets in.
func (p *Policy) Closes() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.closes })
}

func (p *Policy) add(r rule) {
	r.policy, r.index = p, len(p.rules)
	p.groups = p.groups || slices.ContainsFunc(r.peers, func(s selector) bool { return s.kind == byGroup || s.names("", groupSource, anySource) })
	p.rules = append(p.rules, &r)
}

// all are every port of every protocol.
func all() []connections { return []connections{{ports: []ports{{}}}} }

// wholeRange of a protocol's ports; port 0 is never used.
func wholeRange(protocol string) ports {
	switch protocol {
	case "TCP", "UDP", "SCTP":
		return ports{protocol, 1, 65535}
	default:
		return ports{protocol, 0, 65535}
	}
}
