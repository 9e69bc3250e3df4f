package istio

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// These tests check what a waypoint gets from policies with targetRefs. They are the reasons for the design in docs/enforcers.md.

const (
	istioClass, ownClass = "istio-waypoint", "acp-waypoint"
	gatewayGroup         = "gateway.networking.k8s.io"
	meshController       = "istio.io/mesh-controller"
	knownClient          = "cluster.local/ns/any/sa/app-1"
	otherClient          = "cluster.local/ns/any/sa/app-2"
	webPort              = 80
)

// deployment is the waypoint of a Gateway as istiod would deploy it.
type deployment struct{ namespace, name, class, address string }

// deploy creates a Gateway, and the Service and the pod of its waypoint.
func (p *controlPlane) deploy(ctx context.Context, d deployment) error {
	host := fmt.Sprintf("%s.%s.svc.cluster.local", d.name, d.namespace)
	gateway := object(gatewayGroup, "Gateway", d.namespace, d.name, map[string]string{"istio.io/waypoint-for": "all"}, map[string]any{
		"gatewayClassName": d.class,
		"listeners": []any{map[string]any{"name": "mesh", "port": int64(15008), "protocol": "HBONE",
			"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": "All"}}}},
	})
	labels := map[string]string{gatewayLabel: d.name, "gateway.istio.io/managed": "istio.io-mesh-controller"}
	meta := metav1.ObjectMeta{Namespace: d.namespace, Name: d.name, Labels: labels}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: d.name,
		Containers: []corev1.Container{{Name: "istio-proxy", Image: "proxy"}}}}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.name}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{gatewayLabel: d.name},
			Ports: []corev1.ServicePort{{Name: "mesh", Port: 15008, TargetPort: intstr.FromInt32(15008)}}}},
		pod, gateway,
	} {
		if err := p.client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, d.name, err)
		}
	}
	pod.Status = runningAt(d.address)
	gateway.Object["status"] = map[string]any{"addresses": []any{map[string]any{"type": "Hostname", "value": host}}}
	return errors.Join(p.client.Status().Update(ctx, pod), p.client.Status().Update(ctx, gateway))
}

// createService creates a Service whose connections pass the waypoint of a Gateway, and returns its address. The name of its port, http or tcp, is
// its protocol.
func (p *controlPlane) createService(ctx context.Context, in, name, port string, through deployment) (netip.Addr, error) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name,
		Labels: map[string]string{"istio.io/use-waypoint": through.name, "istio.io/use-waypoint-namespace": through.namespace}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Name: port, Port: webPort, TargetPort: intstr.FromInt32(8080)}}}}
	if err := p.client.Create(ctx, s); err != nil {
		return netip.Addr{}, fmt.Errorf("create the Service %s: %w", name, err)
	}
	return netip.ParseAddr(s.Spec.ClusterIP)
}

// target refers to an object of the Gateway API.
func target(kind, name string) map[string]any {
	return map[string]any{"group": gatewayGroup, "kind": kind, "name": name}
}

// rule allows clients by the names of their service accounts, if the destination has one of some addresses; none means every address.
func rule(accounts []string, to ...netip.Addr) map[string]any {
	var principals, values []any
	for _, a := range accounts {
		principals = append(principals, "*/sa/"+a)
	}
	for _, a := range to {
		values = append(values, a.String())
	}
	out := map[string]any{"from": []any{map[string]any{"source": map[string]any{"principals": principals}}}}
	if len(values) > 0 {
		out["when"] = []any{map[string]any{"key": "destination.ip", "values": values}}
	}
	return out
}

// targeted returns a policy in the root namespace that allows something at a target.
func targeted(name string, to map[string]any, rules ...any) *enforcer.Object {
	return &enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: name,
		Spec: map[string]any{"action": "ALLOW", "targetRefs": []any{to}, "rules": rules}}
}

// untilAttached waits until istiod has reported about the target of a policy, and returns the reason.
func (p *controlPlane) untilAttached(ctx context.Context, name string) (reason string, err error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("security.istio.io/v1")
	u.SetKind("AuthorizationPolicy")
	deadline := time.Now().Add(pushTimeout)
	for {
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: rootNamespace, Name: name}, u); err != nil {
			return "", fmt.Errorf("read the policy %s: %w", name, err)
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "WaypointAccepted" {
				return fmt.Sprint(m["status"], " ", m["reason"]), nil
			}
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("istiod does not report about the policy %s: %v", name, u.Object["status"])
		}
		time.Sleep(50 * time.Millisecond) // poll interval
	}
}

// untilServed waits until a waypoint serves some addresses on the port of the Services.
func (p *controlPlane) untilServed(ctx context.Context, d deployment, addresses ...netip.Addr) (*waypoint, error) {
	deadline := time.Now().Add(pushTimeout)
	for {
		w, err := waypointOf(ctx, p.istiod, d.namespace, d.name, d.address)
		for _, a := range addresses {
			if err == nil {
				var known bool
				if _, known, err = w.passes(a, request(knownClient)); err == nil && !known {
					err = fmt.Errorf("the waypoint %s does not serve %s", d.name, a)
				}
			}
		}
		if err == nil {
			return w, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond) // poll interval
	}
}

// request is a request of a client.
func request(principal string) istiotest.Traffic {
	return istiotest.Traffic{Principal: principal, Address: netip.MustParseAddr("10.1.2.3"), Port: webPort, Method: "GET", Path: "/"}
}

// through returns which of the clients a waypoint lets through to an address.
func through(t *testing.T, w *waypoint, to netip.Addr) string {
	t.Helper()
	var out []string
	for name, principal := range map[string]string{"known": knownClient, "other": otherClient} {
		passes, known, err := w.passes(to, request(principal))
		if err != nil {
			t.Fatal(err)
		}
		if passes && known {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// createClasses creates the class of Istio's waypoints, and another one with the same controller.
func createClasses(t *testing.T, p *controlPlane) {
	t.Helper()
	for _, class := range []string{istioClass, ownClass} {
		if err := p.client.Create(
			t.Context(),
			object(gatewayGroup, "GatewayClass", "", class, nil, map[string]any{"controllerName": meshController}),
		); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTargetsOfWaypointPolicies checks which waypoints a policy in Istio's root namespace governs, and what istiod reports about it.
//
// A class of waypoints cannot be dedicated: istiod compares the name with the constant istio-waypoint, whatever the class of the waypoint
// (ShouldAttachPolicy in pilot/pkg/model/policyattachment.go). It reports that it accepts a policy about another class, which has no effect.
func TestTargetsOfWaypointPolicies(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	createClasses(t, p)
	deployments := []deployment{
		{rootNamespace, "in-root", istioClass, "10.9.0.1"},
		{rootNamespace, "also-in-root", istioClass, "10.9.0.2"},
		{namespace, "elsewhere", istioClass, "10.9.0.3"},
		{namespace, "of-own-class", ownClass, "10.9.0.4"},
	}
	vips := map[string]netip.Addr{}
	for i, d := range deployments {
		if err := p.deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		var err error
		if vips[d.name], err = p.createService(t.Context(), namespace, fmt.Sprint("service-", i), "http", d); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		reason   string
		to       map[string]any
		reported string
		governs  []string
	}{
		{"Istio's class is every waypoint of the member, whatever its class", target("GatewayClass", istioClass), "True Accepted",
			[]string{"in-root", "also-in-root", "elsewhere", "of-own-class"}},
		{"another class is accepted, and its waypoints are open", target("GatewayClass", ownClass), "True Accepted", nil},
		{"a Gateway of the root namespace is this one", target("Gateway", "in-root"), "True Accepted", []string{"in-root"}},
		{"a Gateway of another namespace is none", target("Gateway", "elsewhere"), "False TargetNotFound", nil},
	} {
		o := targeted(fmt.Sprint("targets-", i), c.to, rule([]string{"app-1"}))
		if err := p.write(t.Context(), []enforcer.Object{*o}); err != nil {
			t.Fatal(err)
		}
		reported, err := p.untilAttached(t.Context(), o.Name)
		if err != nil {
			t.Fatal(err)
		}
		if reported != c.reported {
			t.Errorf("%s: istiod reports %q, expected %q", c.reason, reported, c.reported)
		}
		for _, d := range deployments {
			w, err := p.untilServed(t.Context(), d, vips[d.name])
			if err != nil {
				t.Fatal(err)
			}
			want := "known other"
			if slices.Contains(c.governs, d.name) {
				want = "known"
			}
			if got := through(t, w, vips[d.name]); got != want {
				t.Errorf("%s: the waypoint %s lets through %q, expected %q", c.reason, d.name, got, want)
			}
		}
		if err := p.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGatewayPolicyIsADefault checks that a policy about a Gateway also decides for a Service that is created later, and for connections to the
// addresses of pods, so that nothing is open until somebody has seen it.
func TestGatewayPolicyIsADefault(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	createClasses(t, p)
	d := deployment{rootNamespace, "orders", istioClass, "10.9.0.1"}
	if err := p.deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := p.write(t.Context(), []enforcer.Object{*targeted("default", target("Gateway", d.name), rule([]string{"app-1"}))}); err != nil {
		t.Fatal(err)
	}
	later, err := p.createService(t.Context(), namespace, "later", "http", d)
	if err != nil {
		t.Fatal(err)
	}
	pod := netip.MustParseAddr("10.9.1.1")
	if err := p.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	server := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server", Labels: map[string]string{"app": "later",
		"istio.io/use-waypoint": d.name, "istio.io/use-waypoint-namespace": d.namespace}},
		Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "default", Containers: []corev1.Container{{Name: "server", Image: "server"}}}}
	if err := p.create(t.Context(), server, pod.String()); err != nil {
		t.Fatal(err)
	}
	w, err := p.untilServed(t.Context(), d, later, pod)
	if err != nil {
		t.Fatal(err)
	}
	for what, to := range map[string]netip.Addr{"a later Service": later, "a pod": pod} {
		if got := through(t, w, to); got != "known" {
			t.Errorf("through the waypoint to %s pass %q", what, got)
		}
	}
}

// TestASharedWaypointMixesResources checks why resources must not share a waypoint whose account their pods allow: the rules of a waypoint are
// about the Service that is called, and whoever may write routes, or endpoints, in the namespace of one Service directs its clients to the pods
// of another one. Rules by destination.ip do not prevent it.
func TestASharedWaypointMixesResources(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	createClasses(t, p)
	d := deployment{rootNamespace, "shared", istioClass, "10.9.0.1"}
	if err := p.deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	one, err := p.createService(t.Context(), namespace, "one", "http", d)
	if err != nil {
		t.Fatal(err)
	}
	two, err := p.createService(t.Context(), ambientNamespace, "two", "http", d)
	if err != nil {
		t.Fatal(err)
	}
	policy := targeted("shared", target("Gateway", d.name), rule([]string{"app-1"}, one), rule([]string{"app-2"}, two))
	if err := p.write(t.Context(), []enforcer.Object{*policy}); err != nil {
		t.Fatal(err)
	}
	w, err := p.untilServed(t.Context(), d, one, two)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := through(t, w, one), through(t, w, two); a != "known" || b != "other" {
		t.Fatalf("rules by destination.ip let through %q and %q", a, b)
	}
	traffic := request(knownClient)
	reaches := func(w *waypoint) bool {
		clusters, err := w.clusters(one, &traffic)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(clusters, func(c string) bool { return strings.Contains(c, "two."+ambientNamespace) })
	}
	if reaches(w) {
		t.Fatal("the clients of one Service reach the other one without a route")
	}
	route := object("networking.istio.io", "VirtualService", namespace, "one", nil, map[string]any{
		"hosts": []any{"one." + namespace + ".svc.cluster.local"},
		"http": []any{map[string]any{"route": []any{map[string]any{"destination": map[string]any{
			"host": "two." + ambientNamespace + ".svc.cluster.local", "port": map[string]any{"number": int64(webPort)}}}}}},
	})
	if err := p.client.Create(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(pushTimeout)
	for !reaches(w) {
		if time.Now().After(deadline) {
			t.Fatal("the route has no effect")
		}
		time.Sleep(100 * time.Millisecond) // poll interval
		if w, err = p.untilServed(t.Context(), d, one, two); err != nil {
			t.Fatal(err)
		}
	}
	if got := through(t, w, one); got != "known" {
		t.Errorf("with the route, %q pass", got)
	}

	// Endpoints lead the clients of one Service to the other one without a route, although the Service selects only its own pods.
	if err := p.client.Delete(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	pod := "10.9.1.2"
	port, name, protocol := int32(8080), "http", corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "one-more", Labels: map[string]string{"kubernetes.io/service-name": "one"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{pod}}},
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}}
	if err := p.client.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	for deadline = time.Now().Add(pushTimeout); ; {
		clusters, err := w.clusters(one, &traffic)
		if err != nil {
			t.Fatal(err)
		}
		if !reaches(w) {
			endpoints, err := endpointsOf(t.Context(), p.istiod, d.namespace, d.name, d.address, clusters)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(endpoints, pod) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the endpoint %s is not one of %v", pod, clusters)
		}
		time.Sleep(100 * time.Millisecond) // poll interval
		if w, err = p.untilServed(t.Context(), d, one, two); err != nil {
			t.Fatal(err)
		}
	}
}
