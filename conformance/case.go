package conformance

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/u8proto"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	enforcers "github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// Protocols of connections, as in a Query.
const (
	ICMP   v1alpha1.Protocol = "ICMP"
	ICMPv6 v1alpha1.Protocol = "ICMPv6"
)

var protocols = map[v1alpha1.Protocol]u8proto.U8proto{
	v1alpha1.ProtocolTCP: u8proto.TCP, v1alpha1.ProtocolUDP: u8proto.UDP, v1alpha1.ProtocolSCTP: u8proto.SCTP,
	ICMP: u8proto.ICMP, ICMPv6: u8proto.ICMPv6,
}

// Connection is a connection to a pod in Here with these labels.
type Connection struct {
	Source      Source            `json:"source"`
	Destination map[string]string `json:"destination"`
	Protocol    v1alpha1.Protocol `json:"protocol"`
	// Port is the port, or the type of an ICMP message.
	Port uint16 `json:"port"`
}

// Objects are the objects of a member.
type Objects struct {
	// Policies are the specs of CiliumClusterwideNetworkPolicies.
	Policies map[string]map[string]any
	Groups   map[string]Group
}

// Translation converts a snapshot into the objects of Here.
type Translation func(s *policy.Snapshot, at time.Time) (Objects, error)

// Translate is the product's translation: it compiles, renders, and selects what the member Here gets. A member in
// which a resource is in Observe gets no object of its unit.
func Translate(s *policy.Snapshot, at time.Time) (Objects, error) {
	out := Objects{Policies: map[string]map[string]any{}, Groups: map[string]Group{}}
	plan, err := enforcers.Prepare(v1alpha1.EnforcerCilium, enforcers.Job{Snapshot: s, Units: s.Compile(at), At: at})
	if err != nil {
		return out, fmt.Errorf("prepare the translation: %w", err)
	}
	for _, u := range plan.Units {
		if !u.Wildcard && s.EffectiveMode(u.Resource, Here, at) == v1alpha1.ModeObserve {
			continue
		}
		rendering, err := plan.Enforcer.Render(u)
		if err != nil {
			return out, fmt.Errorf("render the unit of %s: %w", u.Resource, err)
		}
		for _, o := range rendering.Objects {
			out.Policies[o.Object.Name] = o.Object.Spec
			if spec, ok := o.Overrides[Here]; ok {
				out.Policies[o.Object.Name] = spec
			}
		}
	}
	for _, g := range s.ExternalGroups() {
		rendering, err := cilium.RenderGroup(g)
		if err != nil {
			return out, fmt.Errorf("render the group of %s: %w", g.Subject, err)
		}
		for _, o := range rendering.Objects {
			group := Group{Labels: o.Object.Labels}
			list, _ := o.Object.Spec["externalCIDRs"].([]any)
			for _, text := range list {
				p, err := netip.ParsePrefix(fmt.Sprint(text))
				if err != nil {
					return out, fmt.Errorf("group %s: %w", o.Object.Name, err)
				}
				group.Prefixes = append(group.Prefixes, p)
			}
			out.Groups[o.Object.Name] = group
		}
	}
	return out, nil
}

// Disagreement describes a difference between the evaluator and the engine; "" means none.
type Disagreement string

// query returns the connection as the evaluator's query.
func query(s *policy.Snapshot, c Connection, at time.Time) policy.Query {
	q := policy.Query{Resources: s.ResourcesOf(c.Destination), Cluster: Here, Protocol: c.Protocol, Port: c.Port, At: at, Source: c.Source.address()}
	if c.Source.Cluster != "" {
		q.Subjects, q.Identified = s.SubjectsOf(c.Source.Labels), true
	}
	return q
}

func passes(w policy.Verdict) bool { return w != policy.Denied && w != policy.DefaultDenied }

// judge compares the effective decision, which does not count refused statements, with the engine's result.
func compareDecision(s *policy.Snapshot, c Connection, at time.Time, got verdict) (policy.Verdict, Disagreement) {
	q := query(s, c, at)
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
	case got.Pass && !passes(word):
		return word, Disagreement(fmt.Sprintf("Cilium lets through what is %s", word))
	case !got.Pass && passes(word) && strict:
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
		case !passes(means) && !got.Proxied:
			return word, Disagreement(fmt.Sprintf("no proxy looks at the requests, of which some are %s", means))
		case !passes(means) && got.Requests[i]:
			return word, Disagreement(fmt.Sprintf("Cilium lets a request through that is %s", means))
		case passes(means) && got.Proxied && !got.Requests[i] && strict:
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
