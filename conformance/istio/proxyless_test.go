package istio

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// sentRules returns the number of RBAC filters with rules that istiod sends a gRPC server without a proxy for a port of a pod.
func (p *controlPlane) sentRules(ctx context.Context, x *pod, labels map[string]string, port uint16) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // It ends the stream.
	node, err := nodeOf(x.in, labels)
	if err != nil {
		return 0, err
	}
	node.Id = fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.cluster.local", x.at, x.name, x.in, x.in)
	node.Metadata.Fields["GENERATOR"], node.Metadata.Fields["INSTANCE_IPS"] = structpb.NewStringValue("grpc"), structpb.NewStringValue(x.at.String())
	name := fmt.Sprintf("xds.istio.io/grpc/lds/inbound/%s:%d", x.at, port)
	stream, err := subscribe(ctx, p.istiod, &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: listenerType, ResourceNames: []string{name}})
	if err != nil {
		return 0, err
	}
	got, err := stream.Recv()
	if err != nil {
		return 0, fmt.Errorf("receive %s: %w", name, err)
	}
	if len(got.GetResources()) == 0 {
		return 0, fmt.Errorf("istiod does not send %s", name)
	}
	l := &listenerv3.Listener{}
	if err := got.GetResources()[0].UnmarshalTo(l); err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	rules := 0
	for _, c := range l.GetFilterChains() {
		_, http, _, err := rulesOf(c)
		if err != nil {
			return 0, err
		}
		rules = max(rules, len(http))
	}
	return rules, nil
}

// lets reports whether a server lets a request of a client through. A connection that fails counts as refused.
func (c *caller) lets(ctx context.Context, s *server, principal, address string, port uint16) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // A server that does not serve a port may not answer.
	defer cancel()
	got, err := c.request(ctx, s, istiotest.Traffic{Principal: principal, Address: netip.MustParseAddr(address), Port: port, Path: "/orders/1"})
	return err == nil && got
}

// TestServersWithoutProxy checks what the documents say about gRPC servers without a proxy, and why ACP's policies have rules that match nobody.
func TestServersWithoutProxy(t *testing.T) {
	p, c := startForServers(t)
	ctx := t.Context()
	const port = 8080
	next := netip.MustParseAddr("10.201.0.0")
	serve := func(t *testing.T, in string, labels map[string]string) (*pod, *server) {
		t.Helper()
		next = next.Next()
		x := &pod{in: in, name: "server-" + fmt.Sprint(next.As4()[3]), labels: labels, at: next}
		s := x.start(t, p, c.authority)
		t.Cleanup(func() { x.remove(t, p) })
		return x, s
	}
	write := func(t *testing.T, annotations map[string]string, spec map[string]any) {
		t.Helper()
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"of": t.Name()[len("TestServersWithoutProxy/"):]}}
		u := policyObject(&enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: "policy", Spec: spec})
		u.SetAnnotations(annotations)
		if err := p.client.Create(ctx, u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.clear(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		})
		if err := p.untilPushed(ctx); err != nil {
			t.Fatal(err)
		}
	}
	of := func(t *testing.T) map[string]string {
		return map[string]string{"of": t.Name()[len("TestServersWithoutProxy/"):]}
	}

	for name, tc := range map[string]struct {
		reason       string
		annotations  map[string]string
		spec         map[string]any
		rules        int
		known, other bool
	}{
		"AllowWithoutRules": {"nothing is sent for it, and everyone is served", nil, map[string]any{"action": "ALLOW"}, 0, true, true},
		"Nobody": {"a rule that matches nobody closes them", nil, map[string]any{"action": "ALLOW", "rules": []any{map[string]any{
			"from": []any{map[string]any{"source": map[string]any{"principals": []any{"*"}, "notPrincipals": []any{"*"}}}}}}}, 1, false, false},
		"DryRun": {"a dry run is enforced", map[string]string{"istio.io/dry-run": "true"},
			map[string]any{"action": "ALLOW", "rules": []any{rule([]string{"app-1"})}}, 1, true, false},
		"Audit": {"AUDIT is not sent", nil, map[string]any{"action": "AUDIT", "rules": []any{rule([]string{"app-1"})}}, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, tc.annotations, tc.spec)
			x, s := serve(t, strict, of(t))
			if rules, err := p.sentRules(ctx, x, of(t), port); err != nil || rules != tc.rules {
				t.Errorf("%s: istiod sends %d filters, want %d: %v", tc.reason, rules, tc.rules, err)
			}
			if known, other := c.lets(
				ctx,
				s,
				knownClient,
				"10.1.2.3",
				port,
			), c.lets(
				ctx,
				s,
				otherClient,
				"10.1.2.3",
				port,
			); known != tc.known ||
				other != tc.other {
				t.Errorf("%s: they let through %t and %t", tc.reason, known, other)
			}
		})
	}

	t.Run("Permissive", func(t *testing.T) { // the default without a PeerAuthentication
		write(t, nil, map[string]any{"action": "ALLOW", "rules": []any{rule([]string{"app-1"})}})
		_, s := serve(t, plain, of(t))
		if c.lets(ctx, s, knownClient, "10.1.2.3", port) || c.lets(ctx, s, "", "10.1.2.3", port) {
			t.Error("a client has a name in plain text")
		}
		labels := of(t)
		labels["security.istio.io/tlsMode"] = "istio"
		if _, s = serve(t, plain, labels); !c.lets(ctx, s, knownClient, "10.1.2.3", port) || c.lets(ctx, s, otherClient, "10.1.2.3", port) {
			t.Error("with the label, clients have no names")
		}
	})

	t.Run("Header", func(t *testing.T) {
		write(t, nil, map[string]any{"action": "ALLOW", "rules": []any{map[string]any{"from": []any{map[string]any{"source": map[string]any{
			"ipBlocks": []any{"10.5.0.0/24"}, "notPrincipals": []any{"*"}}}}}}})
		_, s := serve(t, plain, of(t))
		forged := metadata.AppendToOutgoingContext(ctx, "x-forwarded-for", "10.5.0.9")
		if !c.lets(ctx, s, "", "10.5.0.9", port) || c.lets(forged, s, "", "10.9.9.9", port) {
			t.Error("the address is not that of the peer")
		}
	})

	t.Run("PortWithoutService", func(t *testing.T) {
		next = next.Next()
		x := &pod{in: strict, name: "partly", labels: of(t), at: next}
		object, service := x.objects()
		service.Spec.Ports = service.Spec.Ports[:1]
		for _, err := range []error{p.client.Create(ctx, object), p.client.Create(ctx, service)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { x.remove(t, p) })
		object.Status = runningAt(x.at.String())
		if err := p.client.Status().Update(ctx, object); err != nil {
			t.Fatal(err)
		}
		s, err := newServer(p.istiod.Target(), c.authority.dir, x.in, x.name, x.at, object.Labels)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.grpc.Stop)
		served := func(port uint16) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.modes[netip.AddrPortFrom(x.at, port).String()] == connectivity.ServingModeServing
		}
		for deadline := time.Now().Add(pushTimeout); !served(serverPorts[0]); time.Sleep(10 * time.Millisecond) { // poll interval
			if time.Now().After(deadline) {
				t.Fatal("the port of the Service is not served")
			}
		}
		for _, other := range serverPorts[1:] {
			if served(other) || c.lets(ctx, s, knownClient, "10.1.2.3", other) {
				t.Errorf("port %d is served without a Service", other)
			}
		}
	})
}
