package istio

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// managersOf returns the settings of the HTTP connection managers of a listener.
func managersOf(t *testing.T, l *listenerv3.Listener) []*hcmv3.HttpConnectionManager {
	t.Helper()
	var out []*hcmv3.HttpConnectionManager
	for _, c := range l.GetFilterChains() {
		for _, f := range c.GetFilters() {
			m := &hcmv3.HttpConnectionManager{}
			if !f.GetTypedConfig().MessageIs(m) {
				continue
			}
			if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			out = append(out, m)
		}
	}
	return out
}

// TestRemoteAddressesAreThoseOfAHeader checks why ACP renders ipBlocks and never remoteIpBlocks: istiod translates the latter into a rule about the
// address that a header names, which sidecars take from whoever connects, and does not send it to ztunnel. The rules of ACP's policies are about the
// address of the peer: the evaluator, which every comparison uses, knows no others.
func TestRemoteAddressesAreThoseOfAHeader(t *testing.T) {
	p := startControlPlane(t)
	labels := map[string]string{"app": "addressed"}
	policy := func(name, field string) enforcer.Object {
		return enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: name, Spec: map[string]any{
			"action": "ALLOW", "selector": map[string]any{"matchLabels": map[string]any{"app": labels["app"]}},
			"rules": []any{map[string]any{"from": []any{map[string]any{"source": map[string]any{field: []any{"10.5.0.0/24"}}}}}},
		}}
	}
	from := istiotest.Traffic{Address: netip.MustParseAddr("10.5.0.9"), Port: 8080, Method: "GET", Path: "/"}

	if err := p.write(t.Context(), []enforcer.Object{policy("peer", "ipBlocks")}); err != nil {
		t.Fatal(err)
	}
	got, err := sidecarOf(t.Context(), p.istiod, labels)
	if err != nil {
		t.Fatal(err)
	}
	if allowed, err := got.passes(from); err != nil || !allowed {
		t.Errorf("the address of the peer: %v, %v", allowed, err)
	}
	if s, err := p.untilReported(t.Context(), "peer"); err != nil || s.Problem != "" {
		t.Errorf("ztunnel: %+v, %v", s, err)
	}
	if err := p.clear(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := p.write(t.Context(), []enforcer.Object{policy("forwarded", "remoteIpBlocks")}); err != nil {
		t.Fatal(err)
	}
	l, err := inboundOf(t.Context(), p.istiod, namespace, labels)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = read(l); err != nil {
		t.Fatal(err)
	}
	if _, err := got.passes(from); !errors.Is(err, errUnknown) || !strings.Contains(err.Error(), "Principal_RemoteIp") {
		t.Errorf("the address of a header: %v", err)
	}
	managers := managersOf(t, l)
	for _, m := range managers {
		if m.GetUseRemoteAddress().GetValue() || m.GetXffNumTrustedHops() != 0 || len(m.GetOriginalIpDetectionExtensions()) != 0 {
			t.Errorf("the sidecar does not take the last address of the header: %v", m)
		}
	}
	if len(managers) == 0 {
		t.Error("the listener has no connection manager")
	}
	if s, err := p.untilReported(t.Context(), "forwarded"); err != nil || !strings.Contains(s.Problem, "remoteIpBlocks") {
		t.Errorf("ztunnel: %+v, %v", s, err)
	}
}
