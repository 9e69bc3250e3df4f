package istio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

const (
	listenerType  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	namespace     = "shop"
	inbound       = "virtualInbound"
	proxyVersion  = "1.31.0"
	proxyAddress  = "10.0.0.1"
	rootNamespace = "istio-system"
)

// sidecar is what istiod sends to the sidecar of a pod: the RBAC rules of its inbound listener, in the order in which they are evaluated.
type sidecar struct{ http, tcp []*rbacv3.RBAC }

// passes implements proxy: a request is decided by the rules for requests, and a connection by those for connections.
func (s *sidecar) passes(t istiotest.Traffic) (bool, error) {
	if t.Method != "" {
		return passes(s.http, t)
	}
	return passes(s.tcp, t)
}

// sidecarOf returns what istiod sends to the sidecar of a pod with these labels in the usual namespace.
func sidecarOf(ctx context.Context, istiod grpc.ClientConnInterface, labels map[string]string) (*sidecar, error) {
	l, err := inboundOf(ctx, istiod, namespace, labels)
	if err != nil {
		return nil, err
	}
	return read(l)
}

// inboundOf requests the inbound listener of a pod with these labels in a namespace, as its sidecar would. The pod and a service do not have to exist:
// istiod selects policies by the metadata that the proxy sends.
func inboundOf(ctx context.Context, istiod grpc.ClientConnInterface, in string, labels map[string]string) (*listenerv3.Listener, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // It ends the stream.
	stream, err := listenersOf(ctx, istiod, in, labels)
	if err != nil {
		return nil, err
	}
	got, err := stream.Recv()
	if err != nil {
		return nil, fmt.Errorf("receive listeners: %w", err)
	}
	for _, r := range got.GetResources() {
		l := &listenerv3.Listener{}
		if err := r.UnmarshalTo(l); err != nil {
			return nil, fmt.Errorf("read a listener: %w", err)
		}
		if l.GetName() == inbound {
			return l, nil
		}
	}
	return nil, errors.New("istiod sends no inbound listener")
}

// discoveryStream is a stream of resources of a proxy.
type discoveryStream = grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]

// listenersOf requests the listeners of the sidecar of a pod in a namespace with these labels. The stream ends with the context.
func listenersOf(ctx context.Context, istiod grpc.ClientConnInterface, in string, labels map[string]string) (discoveryStream, error) {
	node, err := nodeOf(in, labels)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, istiod, &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: listenerType})
}

// subscribe opens a stream to istiod with a request. The stream ends with the context.
func subscribe(ctx context.Context, istiod grpc.ClientConnInterface, r *discoveryv3.DiscoveryRequest) (discoveryStream, error) {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(istiod).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to istiod: %w", err)
	}
	if err := stream.Send(r); err != nil {
		return nil, fmt.Errorf("request %s: %w", r.GetTypeUrl(), err)
	}
	return stream, nil
}

func nodeOf(in string, labels map[string]string) (*corev3.Node, error) {
	carried := map[string]any{}
	for k, v := range labels {
		carried[k] = v
	}
	metadata, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": in, "CLUSTER_ID": "Kubernetes", "ISTIO_VERSION": proxyVersion, "INSTANCE_IPS": proxyAddress, "LABELS": carried,
	})
	if err != nil {
		return nil, fmt.Errorf("describe the proxy: %w", err)
	}
	return &corev3.Node{Id: fmt.Sprintf("sidecar~%s~pod.%s~%s.svc.cluster.local", proxyAddress, in, in), Metadata: metadata}, nil
}

// read returns the rules of a listener. All chains of the same protocol must have the same ones, except the chain for traffic to the
// listener's own port, which is always blocked.
func read(l *listenerv3.Listener) (*sidecar, error) {
	var out sidecar
	var hasHTTP, hasTCP bool
	for _, c := range l.GetFilterChains() {
		if strings.HasSuffix(c.GetName(), "-blackhole") {
			continue
		}
		tcp, http, manager, err := rulesOf(c)
		if err != nil {
			return nil, fmt.Errorf("chain %s: %w", c.GetName(), err)
		}
		switch {
		case manager && !hasHTTP:
			out.http, hasHTTP = http, true
		case manager && !equal(out.http, http):
			return nil, fmt.Errorf("chain %s has other rules than the chains before it", c.GetName())
		case !manager && !hasTCP:
			out.tcp, hasTCP = tcp, true
		case !manager && !equal(out.tcp, tcp):
			return nil, fmt.Errorf("chain %s has other rules than the chains before it", c.GetName())
		}
		if manager && len(tcp) > 0 {
			return nil, fmt.Errorf("chain %s has rules for connections in front of those for requests", c.GetName())
		}
	}
	if !hasHTTP || !hasTCP {
		return nil, errors.New("the inbound listener has no chain for HTTP or none for TCP")
	}
	return &out, nil
}

func equal(a, b []*rbacv3.RBAC) bool {
	return slices.EqualFunc(a, b, func(x, y *rbacv3.RBAC) bool { return proto.Equal(x, y) })
}

// rulesOf returns the RBAC rules of a chain for connections and for requests, and whether it ends in an HTTP connection manager.
func rulesOf(c *listenerv3.FilterChain) (tcp, http []*rbacv3.RBAC, manager bool, err error) {
	for _, f := range c.GetFilters() {
		switch config := f.GetTypedConfig(); {
		case config.MessageIs(&tcprbacv3.RBAC{}):
			x := &tcprbacv3.RBAC{}
			if err := config.UnmarshalTo(x); err != nil {
				return nil, nil, false, fmt.Errorf("read the filter %s: %w", f.GetName(), err)
			}
			if x.GetMatcher() != nil {
				return nil, nil, false, fmt.Errorf("filter %s: %w", f.GetName(), errUnknown)
			}
			tcp = append(tcp, x.GetRules())
		case config.MessageIs(&hcmv3.HttpConnectionManager{}):
			manager = true
			m := &hcmv3.HttpConnectionManager{}
			if err := config.UnmarshalTo(m); err != nil {
				return nil, nil, false, fmt.Errorf("read the filter %s: %w", f.GetName(), err)
			}
			for _, h := range m.GetHttpFilters() {
				rules, ok, err := httpRules(h.GetTypedConfig())
				if err != nil {
					return nil, nil, false, fmt.Errorf("read the filter %s: %w", h.GetName(), err)
				}
				if ok {
					http = append(http, rules)
				}
			}
		}
	}
	return tcp, http, manager, nil
}

func httpRules(config *anypb.Any) (*rbacv3.RBAC, bool, error) {
	x := &httprbacv3.RBAC{}
	if !config.MessageIs(x) {
		return nil, false, nil
	}
	if err := config.UnmarshalTo(x); err != nil {
		return nil, false, err
	}
	if x.GetMatcher() != nil {
		return nil, false, errUnknown
	}
	return x.GetRules(), true, nil
}
