package istio

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"istio.io/istio/pkg/workloadapi"
	"istio.io/istio/pkg/workloadapi/security"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

const (
	workloadType      = "type.googleapis.com/istio.workload.Workload"
	authorizationType = "type.googleapis.com/istio.security.Authorization"
)

// connectionPolicies are the policies of one pod, as ztunnel gets them.
type connectionPolicies []*security.Authorization

// ztunnelState requests everything that istiod sends to a node's proxy, and returns the policies of each pod by its name.
func ztunnelState(ctx context.Context, istiod grpc.ClientConnInterface) (map[string]connectionPolicies, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // It ends the stream.
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(istiod).DeltaAggregatedResources(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to istiod: %w", err)
	}
	node, err := nodeOf(ambientNamespace, nil)
	if err != nil {
		return nil, err
	}
	node.Id = strings.Replace(node.GetId(), "sidecar~", "ztunnel~", 1)
	byName := map[string]*security.Authorization{}
	err = readAll(stream, node, authorizationType, func() proto.Message { return &security.Authorization{} }, func(m proto.Message) {
		a := m.(*security.Authorization) //nolint:forcetypeassert // made by the function above
		byName[a.GetNamespace()+"/"+a.GetName()] = a
	})
	if err != nil {
		return nil, err
	}
	out := map[string]connectionPolicies{}
	var missing []string
	err = readAll(stream, node, workloadType, func() proto.Message { return &workloadapi.Workload{} }, func(m proto.Message) {
		w := m.(*workloadapi.Workload) //nolint:forcetypeassert // made by the function above
		pod := w.GetName()
		out[pod] = connectionPolicies{}
		for _, name := range w.GetAuthorizationPolicies() {
			if byName[name] == nil {
				missing = append(missing, name)
				continue
			}
			out[pod] = append(out[pod], byName[name])
		}
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("istiod does not send the policies that it names: %v", missing[:1])
	}
	return out, err
}

// readAll subscribes to all resources of a type and reads the first response, which contains all of them.
func readAll(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse], node *corev3.Node,
	kind string, empty func() proto.Message, add func(proto.Message),
) error {
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: kind, ResourceNamesSubscribe: []string{"*"}}); err != nil {
		return fmt.Errorf("request %s: %w", kind, err)
	}
	for {
		got, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("receive %s: %w", kind, err)
		}
		if got.GetTypeUrl() != kind {
			continue // an update of another type
		}
		for _, r := range got.GetResources() {
			m := empty()
			if err := r.GetResource().UnmarshalTo(m); err != nil {
				return fmt.Errorf("read %s: %w", kind, err)
			}
			add(m)
		}
		return nil
	}
}

// passes implements proxy: ztunnel sees connections only. It is written from the description in
// istio.security.Authorization, and from the order in which ztunnel evaluates policies (src/rbac.rs and assert_rbac of ztunnel).
func (policies connectionPolicies) passes(t istiotest.Traffic) (bool, error) {
	closed, allowed, denied := false, false, false
	for _, p := range policies {
		if p.GetDryRun() {
			continue
		}
		matched, err := applies(p, t)
		if err != nil {
			return false, fmt.Errorf("policy %s: %w", p.GetName(), err)
		}
		switch p.GetAction() {
		case security.Action_DENY:
			denied = denied || matched
		case security.Action_ALLOW:
			closed, allowed = true, allowed || matched
		default:
			return false, fmt.Errorf("policy %s: action %v: %w", p.GetName(), p.GetAction(), errUnknown)
		}
	}
	return !denied && (!closed || allowed), nil
}

// applies reports whether a policy matches: one of its groups must, of a group all rules, and of a rule one match.
func applies(p *security.Authorization, t istiotest.Traffic) (bool, error) {
	matched := false
	for _, g := range p.GetGroups() {
		all := true
		for _, r := range g.GetRules() {
			yes, err := anyOf(r.GetMatches(), t, matchesAll)
			if err != nil {
				return false, err
			}
			all = all && (yes || len(r.GetMatches()) == 0)
		}
		matched = matched || all
	}
	return matched, nil
}

// matchesAll reports whether every condition of a match holds. A match without conditions matches nothing.
func matchesAll(m *security.Match, t istiotest.Traffic) (bool, error) {
	if len(m.GetNamespaces())+len(m.GetNotNamespaces())+len(m.GetServiceAccounts())+len(m.GetNotServiceAccounts())+
		len(m.GetDestinationIps())+len(m.GetNotDestinationIps())+len(m.GetExtensions()) > 0 {
		return false, fmt.Errorf("a match by something else than principals, addresses and ports: %w", errUnknown)
	}
	if len(m.GetPrincipals())+len(m.GetNotPrincipals())+len(m.GetSourceIps())+len(m.GetNotSourceIps())+
		len(m.GetDestinationPorts())+len(m.GetNotDestinationPorts()) == 0 {
		return false, nil
	}
	names := func(list []*security.StringMatch) bool {
		return slices.ContainsFunc(list, func(s *security.StringMatch) bool { return matchIdentity(s, t.Principal) })
	}
	var problem error
	from := func(list []*security.Address) bool {
		return slices.ContainsFunc(list, func(a *security.Address) bool {
			at, ok := netip.AddrFromSlice(a.GetAddress())
			if !ok {
				problem = errors.Join(problem, fmt.Errorf("address %x: %w", a.GetAddress(), errUnknown))
				return false
			}
			return netip.PrefixFrom(at, int(a.GetLength())).Contains(t.Address) //nolint:gosec // at most 128
		})
	}
	matched := (len(m.GetPrincipals()) == 0 || names(m.GetPrincipals())) && !names(m.GetNotPrincipals())
	matched = (len(m.GetSourceIps()) == 0 || from(m.GetSourceIps())) && !from(m.GetNotSourceIps()) && matched
	matched = (len(m.GetDestinationPorts()) == 0 || slices.Contains(m.GetDestinationPorts(), uint32(t.Port))) &&
		!slices.Contains(m.GetNotDestinationPorts(), uint32(t.Port)) && matched
	return matched, problem
}

// matchIdentity reports whether a matcher matches an identity without its scheme. A connection without an identity is never matched.
func matchIdentity(m *security.StringMatch, identity string) bool {
	if identity == "" {
		return false
	}
	switch p := m.GetMatchType().(type) {
	case *security.StringMatch_Exact:
		return identity == p.Exact
	case *security.StringMatch_Prefix:
		return strings.HasPrefix(identity, p.Prefix)
	case *security.StringMatch_Suffix:
		return strings.HasSuffix(identity, p.Suffix)
	default:
		return true // Presence.
	}
}
