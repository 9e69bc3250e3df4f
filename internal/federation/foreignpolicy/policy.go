package foreignpolicy

import (
	"slices"
	"sync/atomic"
)

// tier is the order in which Cilium evaluates policies.
type tier uint8

const (
	adminTier tier = iota
	normalTier
	baselineTier
)

// verdict is the verdict of a rule about the connections that it matches.
type verdict uint8

const (
	allow verdict = iota
	deny
	// pass continues with the next tier.
	pass
)

// ports is a range of ports of a protocol, or of ICMP types.
type ports struct {
	// protocol is in upper case; "" means every protocol with all its ports.
	protocol    string
	first, last uint16
}

func (p ports) includes(protocol string, port uint16) bool {
	return p.protocol == "" || p.protocol == protocol && p.first <= port && port <= p.last
}

// connections are the connections that a rule matches, from each of its peers.
type connections struct {
	ports []ports
	// requests are the HTTP requests that are let through, as written; nil means the whole connection.
	requests []string
	// uncertain reports whether the ports are not known exactly; ports contains the ports to which the rule may apply.
	uncertain bool
}

// rule is one ingress rule.
type rule struct {
	policy  *Policy
	index   int
	tier    tier
	order   float64
	verdict verdict
	// closes reports whether a workload that the rule selects refuses what no rule lets in.
	closes  bool
	subject selector
	peers   []selector
	grants  []connections
	// peerChecks is the number of checks that a comparison of all peers with a source takes, and portChecks that of an evaluation of the
	// rule on a port.
	peerChecks, portChecks int
}

// size measures how much work the rule causes.
func (r *rule) size() int { return r.peerChecks + r.portChecks }

// Policy is the ingress part of a policy in a member.
type Policy struct {
	Kind, Namespace, Name string
	rules                 []*rule
	id                    uint64
	// groups reports whether a rule references groups of addresses.
	groups bool
}

var policies atomic.Uint64

func newPolicy(kind, namespace, name string) *Policy {
	return &Policy{Kind: kind, Namespace: namespace, Name: name, id: policies.Add(1)}
}

// String returns the policy's name for messages.
func (p *Policy) String() string {
	if p.Namespace == "" {
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// Opens reports whether the policy lets any connection in.
func (p *Policy) Opens() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.verdict == allow && len(r.peers) > 0 && len(r.grants) > 0 })
}

// Closes reports whether the policy makes the workloads that it selects refuse what no rule lets in.
func (p *Policy) Closes() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.closes })
}

func (p *Policy) add(r rule) {
	r.policy, r.index = p, len(p.rules)
	p.groups = p.groups || slices.ContainsFunc(r.peers, func(s selector) bool { return s.kind == byGroup || s.names("", groupSource, anySource) })
	r.portChecks = 1
	for i := range r.peers {
		r.peerChecks += r.peers[i].checks()
	}
	for _, g := range r.grants {
		r.portChecks += len(g.ports) + len(g.requests)
	}
	p.rules = append(p.rules, &r)
}

// all returns every port of every protocol.
func all() []connections { return []connections{{ports: []ports{{}}}} }

// wholeRange returns the range of all ports of a protocol; port 0 is never used.
func wholeRange(protocol string) ports {
	switch protocol {
	case "TCP", "UDP", "SCTP":
		return ports{protocol, 1, 65535}
	default:
		return ports{protocol, 0, 65535}
	}
}
