package istio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	cncfcorev3 "github.com/cncf/xds/go/xds/core/v3"
	cncfmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// This file contains the configuration of a waypoint: the listener that connections reach after their tunnel has ended, which chooses a chain of
// filters by the address that the client called.

const (
	// waypointListener is the listener behind the tunnel. Source: pilot/pkg/networking/core/waypoint.go.
	waypointListener = "main_internal"
	gatewayLabel     = "gateway.networking.k8s.io/gateway-name"
	httpProtocol     = "'http/1.1'"
	endpointType     = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// waypoint is what istiod sends to a waypoint.
type waypoint struct {
	chooses *cncfmatcherv3.Matcher
	chains  map[string]*listenerv3.FilterChain
}

// waypointNode describes the proxy of the waypoint of a Gateway.
func waypointNode(in, name, address string) (*corev3.Node, error) {
	node, err := nodeOf(in, map[string]string{gatewayLabel: name})
	if err != nil {
		return nil, err
	}
	node.Id = fmt.Sprintf("waypoint~%s~%s.%s~%s.svc.cluster.local", address, name, in, in)
	node.Metadata.Fields["INSTANCE_IPS"] = structpb.NewStringValue(address)
	return node, nil
}

// resourcesOf requests resources of a type for the waypoint of a Gateway, whose pod has an address, and returns istiod's first answer.
func resourcesOf(ctx context.Context, istiod grpc.ClientConnInterface, in, name, address, typeURL string, resources []string) ([]*anypb.Any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // It ends the stream.
	node, err := waypointNode(in, name, address)
	if err != nil {
		return nil, err
	}
	stream, err := subscribe(ctx, istiod, &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: resources})
	if err != nil {
		return nil, err
	}
	got, err := stream.Recv()
	if err != nil {
		return nil, fmt.Errorf("receive %s: %w", typeURL, err)
	}
	return got.GetResources(), nil
}

// waypointOf requests the listener of the waypoint of a Gateway, whose pod has an address.
func waypointOf(ctx context.Context, istiod grpc.ClientConnInterface, in, name, address string) (*waypoint, error) {
	listeners, err := resourcesOf(ctx, istiod, in, name, address, listenerType, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range listeners {
		l := &listenerv3.Listener{}
		if err := r.UnmarshalTo(l); err != nil {
			return nil, fmt.Errorf("read a listener: %w", err)
		}
		if l.GetName() != waypointListener {
			continue
		}
		w := &waypoint{chooses: l.GetFilterChainMatcher(), chains: map[string]*listenerv3.FilterChain{}}
		for _, c := range l.GetFilterChains() {
			w.chains[c.GetName()] = c
		}
		return w, nil
	}
	return nil, errors.New("istiod sends no listener of a waypoint")
}

// passes reports whether the waypoint lets traffic to an address through. known is false if it serves nothing at the address.
func (w *waypoint) passes(to netip.Addr, t istiotest.Traffic) (through, known bool, err error) {
	t.Destination = to
	c, err := w.chain(to, &t)
	if c == nil || err != nil {
		return false, false, err
	}
	tcp, http, manager, err := rulesOf(c)
	if err != nil {
		return false, false, fmt.Errorf("chain %s: %w", c.GetName(), err)
	}
	if manager {
		if len(tcp) > 0 {
			return false, false, fmt.Errorf("chain %s has rules for connections in front of those for requests", c.GetName())
		}
		through, err = passes(http, t)
		return through, true, err
	}
	t.Method, t.Path = "", ""
	through, err = passes(tcp, t)
	return through, true, err
}

// chain returns the chain of filters for traffic to an address, or nil if there is none.
func (w *waypoint) chain(to netip.Addr, t *istiotest.Traffic) (*listenerv3.FilterChain, error) {
	name, err := choose(w.chooses, to, t)
	if name == "" || err != nil {
		return nil, err
	}
	c := w.chains[name]
	if c == nil {
		return nil, fmt.Errorf("the chain %s does not exist", name)
	}
	return c, nil
}

// choose returns the name of the chain that a matcher chooses, or "". A matcher that istiod does not generate for waypoints is an error.
func choose(m *cncfmatcherv3.Matcher, to netip.Addr, t *istiotest.Traffic) (string, error) {
	tree := m.GetMatcherTree()
	if tree == nil {
		return "", fmt.Errorf("matcher %T: %w", m.GetMatcherType(), errUnknown)
	}
	var found *cncfmatcherv3.Matcher_OnMatch
	input := tree.GetInput().GetTypedConfig()
	switch {
	case input.MessageIs(&networkv3.DestinationIPInput{}):
		ranges := &cncfmatcherv3.IPMatcher{}
		if err := tree.GetCustomMatch().GetTypedConfig().UnmarshalTo(ranges); err != nil {
			return "", fmt.Errorf("read the addresses: %w", err)
		}
		for _, r := range ranges.GetRangeMatchers() {
			yes, err := inAny(r.GetRanges(), to)
			if err != nil {
				return "", err
			}
			if yes && found != nil {
				return "", fmt.Errorf("%s is in two ranges: %w", to, errUnknown)
			}
			if yes {
				found = r.GetOnMatch()
			}
		}
	case input.MessageIs(&networkv3.DestinationPortInput{}):
		found = tree.GetExactMatchMap().GetMap()[strconv.Itoa(int(t.Port))]
	case input.MessageIs(&networkv3.ApplicationProtocolInput{}):
		if t.Method != "" {
			found = tree.GetExactMatchMap().GetMap()[httpProtocol]
		}
	default:
		return "", fmt.Errorf("input %s: %w", input.GetTypeUrl(), errUnknown)
	}
	if found == nil {
		found = m.GetOnNoMatch()
	}
	if inner := found.GetMatcher(); inner != nil {
		return choose(inner, to, t)
	}
	if found == nil {
		return "", nil
	}
	name := &wrapperspb.StringValue{}
	if err := found.GetAction().GetTypedConfig().UnmarshalTo(name); err != nil {
		return "", fmt.Errorf("read the name of a chain: %w", err)
	}
	return name.GetValue(), nil
}

func inAny(ranges []*cncfcorev3.CidrRange, a netip.Addr) (bool, error) {
	for _, r := range ranges {
		at, err := netip.ParseAddr(r.GetAddressPrefix())
		if err != nil {
			return false, fmt.Errorf("address prefix: %w", err)
		}
		if netip.PrefixFrom(at, int(r.GetPrefixLen().GetValue())).Masked().Contains(a) { //nolint:gosec // at most 128
			return true, nil
		}
	}
	return false, nil
}

// clusters returns the clusters to which a waypoint sends traffic to an address, sorted.
func (w *waypoint) clusters(to netip.Addr, t *istiotest.Traffic) ([]string, error) {
	c, err := w.chain(to, t)
	if c == nil || err != nil {
		return nil, err
	}
	var out []string
	for _, f := range c.GetFilters() {
		var m proto.Message
		switch config := f.GetTypedConfig(); {
		case config.MessageIs(&hcmv3.HttpConnectionManager{}):
			m = &hcmv3.HttpConnectionManager{}
		case config.MessageIs(&tcpproxyv3.TcpProxy{}):
			m = &tcpproxyv3.TcpProxy{}
		default:
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
			return nil, fmt.Errorf("read the filter %s: %w", f.GetName(), err)
		}
		switch m := m.(type) {
		case *hcmv3.HttpConnectionManager:
			for _, h := range m.GetRouteConfig().GetVirtualHosts() {
				for _, r := range h.GetRoutes() {
					out = append(out, clustersOf(r.GetRoute())...)
				}
			}
		case *tcpproxyv3.TcpProxy:
			out = append(out, m.GetCluster())
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func clustersOf(r *routev3.RouteAction) []string {
	if r.GetWeightedClusters() == nil {
		return []string{r.GetCluster()}
	}
	var out []string
	for _, c := range r.GetWeightedClusters().GetClusters() {
		out = append(out, c.GetName())
	}
	return out
}

// endpointsOf returns the addresses to which a waypoint sends the traffic of clusters.
func endpointsOf(ctx context.Context, istiod grpc.ClientConnInterface, in, name, address string, clusters []string) ([]string, error) {
	assignments, err := resourcesOf(ctx, istiod, in, name, address, endpointType, clusters)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range assignments {
		a := &endpointv3.ClusterLoadAssignment{}
		if err := r.UnmarshalTo(a); err != nil {
			return nil, fmt.Errorf("read endpoints: %w", err)
		}
		for _, l := range a.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				out = append(out, addressesOf(e)...)
			}
		}
	}
	return out, nil
}

// addressesOf returns the addresses of an endpoint: its own, or those to which the tunnel from an internal listener leads.
func addressesOf(e *endpointv3.LbEndpoint) []string {
	if at := e.GetEndpoint().GetAddress().GetSocketAddress(); at != nil {
		return []string{at.GetAddress()}
	}
	var out []string
	for _, fields := range e.GetMetadata().GetFilterMetadata() {
		for _, v := range fields.GetFields() {
			if host, _, err := net.SplitHostPort(v.GetStringValue()); err == nil {
				out = append(out, host)
			}
		}
	}
	return out
}
