package ciliumtest

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	enforcers "github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// Here is the member for which everything is rendered and decided.
const Here = "m1"

// Protocols of connections, as in a Query.
const (
	ICMP   v1alpha1.Protocol = "ICMP"
	ICMPv6 v1alpha1.Protocol = "ICMPv6"
)

// Source is the origin of a connection; exactly one of Cluster, Address and Reserved is set.
type Source struct {
	// Labels contains the labels of an endpoint in Cluster.
	Labels  map[string]string `json:"labels,omitempty"`
	Cluster string            `json:"cluster,omitempty"`
	// NoNamespace marks an endpoint whose identity has no namespace, which is not a pod.
	NoNamespace bool `json:"noNamespace,omitempty"`
	// Address is an address outside the fleet.
	Address string `json:"address,omitempty"`
	// Reserved is a reserved identity of Cilium, for example "host".
	Reserved string `json:"reserved,omitempty"`
}

// worldAddresses are addresses for the identities of the world. No range of a random world but the widest covers them.
var worldAddresses = map[string]string{"world-ipv4": "203.0.113.1", "world-ipv6": "2001:dead::1"}

// Addr returns the address of a source outside the fleet; invalid for the others.
func (s Source) Addr() netip.Addr {
	text := s.Address
	if s.Reserved != "" {
		text = worldAddresses[s.Reserved]
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// Group is a CiliumCIDRGroup.
type Group struct {
	Labels   map[string]string
	Prefixes []netip.Prefix
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

// Query returns the connection as the evaluator's query.
func Query(s *policy.Snapshot, c Connection, at time.Time) policy.Query {
	q := policy.Query{Resources: s.ResourcesOf(c.Destination), Cluster: Here, Protocol: c.Protocol, Port: c.Port, At: at, Source: c.Source.Addr()}
	if c.Source.Cluster != "" {
		q.Subjects, q.Identified = s.SubjectsOf(c.Source.Labels), true
	}
	return q
}

// Passes reports whether a connection with the verdict is let through.
func Passes(w policy.Verdict) bool { return w != policy.Denied && w != policy.DefaultDenied }
