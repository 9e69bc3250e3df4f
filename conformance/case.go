package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/u8proto"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
	"github.com/acp-io/acp/internal/policy"
)

var protocols = map[v1alpha1.Protocol]u8proto.U8proto{
	v1alpha1.ProtocolTCP: u8proto.TCP, v1alpha1.ProtocolUDP: u8proto.UDP, v1alpha1.ProtocolSCTP: u8proto.SCTP,
	ICMP: u8proto.ICMP, ICMPv6: u8proto.ICMPv6,
}

// Disagreement describes a difference between the evaluator and the engine; "" means none.
type Disagreement string

// compareDecision compares the effective decision, which does not count refused statements, with the engine's result.
func compareDecision(s *policy.Snapshot, c Connection, at time.Time, got verdict) (policy.Verdict, Disagreement) {
	q := ciliumtest.Query(s, c, at)
	word := s.DecideEffective(&q).Verdict
	// An allow does not match an endpoint without a namespace; this is a documented limit.
	strict := !c.Source.NoNamespace
	switch {
	case c.Source.Reserved == "host":
		// The node of the destination is always allowed, because kubelet probes from it.
		if !got.Pass {
			return word, "the own node is kept out"
		}
		return word, ""
	case got.Pass && !ciliumtest.Passes(word):
		return word, Disagreement(fmt.Sprintf("Cilium lets through what is %s", word))
	case !got.Pass && ciliumtest.Passes(word) && strict:
		return word, Disagreement(fmt.Sprintf("Cilium keeps out what is %s", word))
	case !got.Pass:
		return word, ""
	}
	if got.Proxied && !enforces(s, q) {
		return word, "requests are looked at though nothing enforces"
	}
	for i, r := range requests {
		q.Method, q.Path = r.method, r.path
		means := s.DecideEffective(&q).Verdict
		switch {
		case !ciliumtest.Passes(means) && !got.Proxied:
			return word, Disagreement(fmt.Sprintf("no proxy looks at the requests, of which some are %s", means))
		case !ciliumtest.Passes(means) && got.Requests[i]:
			return word, Disagreement(fmt.Sprintf("Cilium lets a request through that is %s", means))
		case ciliumtest.Passes(means) && got.Proxied && !got.Requests[i] && strict:
			return word, Disagreement(fmt.Sprintf("Cilium keeps out a request that is %s", means))
		}
	}
	return word, ""
}

// enforces reports whether a resource of the destination is in Enforce.
func enforces(s *policy.Snapshot, q policy.Query) bool {
	return slices.ContainsFunc(q.Resources, func(r string) bool { return s.EffectiveMode(r, Here, q.At) == v1alpha1.ModeEnforce })
}

// complete reports whether nothing is refused.
func complete(s *policy.Snapshot, at time.Time) bool {
	if len(s.Refusals()) > 0 {
		return false
	}
	for _, u := range s.Compile(at) {
		if len(u.Refused) > 0 {
			return false
		}
	}
	return true
}

// member is an agent with all objects.
type member struct {
	engine       *engine
	sources      []*identity.Identity
	destinations []*identity.Identity
}

func newMember(objects Objects, sources []Source, destinations []map[string]string) (*member, error) {
	r := newRegistry(objects)
	m := &member{}
	for _, s := range sources {
		id, err := r.source(s)
		if err != nil {
			return nil, err
		}
		m.sources = append(m.sources, id)
	}
	for _, d := range destinations {
		m.destinations = append(m.destinations, r.pod(d, Here, false))
	}
	m.engine = newEngine(r.all)
	for name, spec := range objects.Policies {
		if err := m.engine.set(name, spec); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Case is one connection in one world.
type Case struct {
	// Why is the reason for keeping the case.
	Why        string         `json:"why"`
	At         time.Time      `json:"at"`
	Connection Connection     `json:"connection"`
	Word       policy.Verdict `json:"verdict"`
	Input      *policy.Input  `json:"input"`
}

// Check decides the case both ways. It returns an error if Cilium, or the translation, rejects an object.
func (c *Case) Check(translate Translation) (policy.Verdict, Disagreement, error) {
	s := policy.NewSnapshot(*c.Input)
	objects, err := translate(s, c.At)
	if err != nil {
		return "", "", err
	}
	m, err := newMember(objects, []Source{c.Connection.Source}, []map[string]string{c.Connection.Destination})
	if err != nil {
		return "", "", err
	}
	got, err := m.engine.decide(m.sources[0], m.destinations[0], protocols[c.Connection.Protocol], c.Connection.Port)
	if err != nil {
		return "", "", err
	}
	outcome, d := compareDecision(s, c.Connection, c.At, got)
	return outcome, d, nil
}
