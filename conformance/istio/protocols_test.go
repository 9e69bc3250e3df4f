package istio

import (
	"net/netip"
	"testing"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// requestRule is a rule about requests with the method GET of an application, to some ports; none means every port.
func requestRule(account string, ports ...any) map[string]any {
	out := rule([]string{account})
	operation := map[string]any{"methods": []any{"GET"}}
	if len(ports) > 0 {
		operation["ports"] = ports
	}
	out["to"] = []any{map[string]any{"operation": operation}}
	return out
}

// policiesOf returns the two policies of a unit: an ALLOW and a DENY, with a selector or another target.
func policiesOf(name string, target map[string]any, allow, deny []any) []enforcer.Object {
	out := []enforcer.Object{{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: name,
		Spec: map[string]any{"action": "ALLOW", "rules": allow}}}
	if deny != nil {
		out = append(out, enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: name + "-deny",
			Spec: map[string]any{"action": "DENY", "rules": deny}})
	}
	for i := range out {
		for k, v := range target {
			out[i].Spec[k] = v
		}
	}
	return out
}

// TestRequestRulesOfConnections checks what rules about requests are for a connection that is not HTTP, at a sidecar and at a waypoint: an allow matches
// nothing, and a deny matches the whole connection of the denied client, at a sidecar on its ports.
func TestRequestRulesOfConnections(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	createClasses(t, p)
	p.warnings.ignored = true // Istiod warns about denies of requests without ports.
	d := deployment{rootNamespace, "tcp", istioClass, "10.9.0.1"}
	if err := p.deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	vip, err := p.createService(t.Context(), namespace, "tcp", "tcp", d)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "protocols"}
	selected := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": labels["app"]}}}
	attached := map[string]any{"targetRefs": []any{target("Gateway", d.name)}}
	anyone := []any{rule([]string{"app-1", "app-2"})}
	for _, c := range []struct {
		reason       string
		allow, deny  []any
		known, other bool // at the sidecar on port 8080, and at the waypoint
		knownAt80    bool // at the sidecar
	}{
		{"an allow of requests matches nothing", []any{requestRule("app-1", "8080")}, nil, false, false, false},
		{"an allow of connections matches", anyone, nil, true, true, true},
		{"a deny of requests matches the whole connection", anyone, []any{requestRule("app-1", "8080")}, false, true, true},
		{"without ports on every port", anyone, []any{requestRule("app-1")}, false, true, false},
	} {
		if err := p.write(t.Context(), policiesOf("selected", selected, c.allow, c.deny)); err != nil {
			t.Fatal(err)
		}
		side, err := sidecarOf(t.Context(), p.istiod, labels)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			client string
			port   uint16
			want   bool
		}{{knownClient, 8080, c.known}, {otherClient, 8080, c.other}, {knownClient, 80, c.knownAt80}} {
			connection := istiotest.Traffic{Principal: x.client, Address: netip.MustParseAddr("10.1.2.3"), Port: x.port}
			if got, err := side.passes(connection); err != nil || got != x.want {
				t.Errorf("%s: the sidecar lets %s through to %d: %t, %v", c.reason, x.client, x.port, got, err)
			}
		}
		if err := p.clear(t.Context()); err != nil {
			t.Fatal(err)
		}

		// A waypoint's policies have no ports.
		withoutPorts := func(rules []any) (out []any) {
			for _, r := range rules {
				if m, _ := r.(map[string]any); m["to"] != nil {
					r = requestRule("app-1")
				}
				out = append(out, r)
			}
			return out
		}
		if err := p.write(t.Context(), policiesOf("attached", attached, withoutPorts(c.allow), withoutPorts(c.deny))); err != nil {
			t.Fatal(err)
		}
		w, err := p.untilServed(t.Context(), d, vip)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for name, passes := range map[string]bool{"known": c.known, "other": c.other} {
			if passes && want != "" {
				want = "known other"
			} else if passes {
				want = name
			}
		}
		if got := through(t, w, vip); got != want {
			t.Errorf("%s: the waypoint lets %q through, want %q", c.reason, got, want)
		}
		if err := p.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
