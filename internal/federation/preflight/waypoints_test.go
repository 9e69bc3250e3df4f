package preflight

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/acp-io/acp/internal/federation"
)

// kindOf are the kinds of the resources that waypoints are read from.
var kindOf = map[schema.GroupVersionResource]string{
	gatewayResource: "Gateway", gatewayClassResource: "GatewayClass", namespaceResource: "Namespace", serviceResource: "Service",
	serviceEntryResource: "ServiceEntry",
}

// stored returns an object of a resource with labels, as pairs, and a spec.
func stored(resource schema.GroupVersionResource, namespace, name string, spec map[string]any, labels ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(resource.GroupVersion().WithKind(kindOf[resource]))
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(pairs(labels))
	return u
}

func pairs(list []string) map[string]string {
	out := map[string]string{}
	for pair := range slices.Chunk(list, 2) {
		out[pair[0]] = pair[1]
	}
	return out
}

// reading returns a client of the objects.
func reading(t *testing.T, objects ...*unstructured.Unstructured) *fake.FakeDynamicClient {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{}
	for resource, kind := range kindOf {
		lists[resource] = kind + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	for _, o := range objects {
		for resource, kind := range kindOf {
			if kind != o.GetKind() {
				continue
			}
			if err := client.Tracker().Create(resource, o, o.GetNamespace()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return client
}

// TestWaypoints checks which waypoints connections to a pod pass.
func TestWaypoints(t *testing.T) {
	const use, useNamespace, carries = "istio.io/use-waypoint", "istio.io/use-waypoint-namespace", "istio.io/waypoint-for"
	gateway := func(name string, labels ...string) *unstructured.Unstructured {
		return stored(gatewayResource, "shop", name, map[string]any{"gatewayClassName": "istio-waypoint"}, labels...)
	}
	redis := map[string]any{"selector": map[string]any{"app": "redis"}}
	entry := map[string]any{"workloadSelector": map[string]any{"labels": map[string]any{"app": "redis"}}}
	namespace := func(labels ...string) *unstructured.Unstructured {
		return stored(namespaceResource, "", "shop", nil, labels...)
	}
	service := func(labels ...string) *unstructured.Unstructured {
		return stored(serviceResource, "shop", "redis", redis, labels...)
	}
	type list = []*unstructured.Unstructured
	for _, c := range []struct {
		reason  string
		objects list
		pod     []string // further labels of the pod
		want    string
	}{
		{"nothing names one", list{gateway("w"), namespace(), service()}, nil, ""},
		{"the Service does", list{gateway("w"), namespace(), service(use, "w")}, nil, "shop/w"},
		{"the namespace does", list{gateway("w"), namespace(use, "w"), service()}, nil, "shop/w"},
		{"a ServiceEntry does", list{gateway("w"), stored(serviceEntryResource, "shop", "redis", entry, use, "w")}, nil, "shop/w"},
		{"the Service opts out", list{gateway("w"), namespace(use, "w"), service(use, "none")}, nil, ""},
		{"the Service names one that does not exist", list{gateway("w"), namespace(use, "w"), service(use, "x")}, nil, ""},
		{"the Service selects other pods", list{gateway("w"), stored(serviceResource, "shop", "x",
			map[string]any{"selector": map[string]any{"app": "x"}}, use, "w")}, nil, ""},
		{"the Service selects nothing", list{gateway("w"), stored(serviceResource, "shop", "x", map[string]any{}, use, "w")}, nil, ""},
		{"the Service is in another namespace", list{gateway("w"),
			stored(serviceResource, "other", "redis", redis, use, "w", useNamespace, "shop")}, nil, ""},
		{"the waypoint is in another namespace", list{stored(gatewayResource, "edge", "w", nil), service(use, "w", useNamespace, "edge")}, nil, "edge/w"},
		{"so the namespace says", list{stored(gatewayResource, "edge", "w", nil), namespace(use, "w", useNamespace, "edge"), service()}, nil, "edge/w"},
		{"the waypoint is for pods, and nobody connects to these", list{gateway("w", carries, "workload"), service(use, "w")}, nil, ""},
		{"the pod names one for Services", list{gateway("w")}, []string{use, "w"}, ""},
		{"the pod names one for pods", list{gateway("w", carries, "workload")}, []string{use, "w"}, "shop/w"},
		{"the namespace names one for everything", list{gateway("w", carries, "all"), namespace(use, "w")}, nil, "shop/w"},
		{"the pod opts out, the Service does not", list{gateway("w", carries, "all"), namespace(use, "w"), service()}, []string{use, "none"}, "shop/w"},
		{"both opt out", list{gateway("w", carries, "all"), namespace(use, "w"), service(use, "none")}, []string{use, "none"}, ""},
		{"the waypoint is for nothing", list{gateway("w", carries, "none"), service(use, "w")}, []string{use, "w"}, ""},
		{"the waypoint is for something new", list{gateway("w", carries, "new"), namespace(use, "w")}, nil, "shop/w"},
		{"its class says for what it is", list{gateway("w"), namespace(use, "w"),
			stored(gatewayClassResource, "", "istio-waypoint", nil, carries, "workload")}, nil, "shop/w"},
		{"its own label counts more", list{gateway("w", carries, "service"), namespace(use, "w"),
			stored(gatewayClassResource, "", "istio-waypoint", nil, carries, "workload")}, nil, ""},
		{"two Services with different ones", list{gateway("w"), gateway("v"), service(use, "w"),
			stored(serviceResource, "shop", "also", redis, use, "v")}, nil, "shop/v, shop/w"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w, why := readWaypoints(t.Context(), reading(t, c.objects...), Istio{GatewayAPI: true})
			if !why.IsZero() {
				t.Fatal(why.Text)
			}
			pod := &metav1.PartialObjectMetadata{}
			pod.SetNamespace("shop")
			pod.SetLabels(pairs(append(c.pod, "app", "redis")))
			if got := strings.Join(w.of(pod), ", "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestWaypointsAreReadSparingly checks that a member without Gateways is asked for nothing else, that one without the Gateway API is asked
// for nothing, and that what cannot be read is unknown.
func TestWaypointsAreReadSparingly(t *testing.T) {
	gateway := stored(gatewayResource, "shop", "w", nil)
	type list = []*unstructured.Unstructured
	for _, c := range []struct {
		reason   string
		istio    Istio
		objects  list
		refuses  string
		says     string
		requests int
	}{
		{reason: "the kinds are not there", istio: Istio{Served: true}},
		{reason: "they could not be discovered", istio: Istio{Unread: unread(apierrors.NewTimeoutError("late", 1), "kinds")}, says: "late"},
		{reason: "no Gateway is there", istio: Istio{Served: true, GatewayAPI: true}, requests: 2},
		{reason: "a Gateway is there", istio: Istio{GatewayAPI: true}, objects: list{gateway}, requests: 5},
		{reason: "classes", istio: Istio{GatewayAPI: true}, refuses: "gatewayclasses", says: "GatewayClasses may not be read", requests: 1},
		{reason: "Gateways", istio: Istio{GatewayAPI: true}, refuses: "gateways", says: "Gateways may not be read", requests: 2},
		{reason: "namespaces", istio: Istio{GatewayAPI: true}, objects: list{gateway}, refuses: "namespaces",
			says: "namespaces may not be read", requests: 3},
		{reason: "Services", istio: Istio{GatewayAPI: true}, objects: list{gateway}, refuses: "services", says: "Services may not be read", requests: 4},
		{reason: "ServiceEntries", istio: Istio{GatewayAPI: true}, objects: list{gateway}, refuses: "serviceentries",
			says: "ServiceEntries may not be read", requests: 5},
	} {
		client := reading(t, c.objects...)
		client.PrependReactor("list", c.refuses, func(a clienttesting.Action) (bool, runtime.Object, error) {
			return c.refuses != "", nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
		})
		_, why := readWaypoints(t.Context(), client, c.istio)
		if (why.Text == "") != (c.says == "") || !strings.Contains(why.Text, c.says) || len(client.Actions()) != c.requests {
			t.Errorf("%s: %q after %d requests", c.reason, why.Text, len(client.Actions()))
		}
	}
}

// TestDedicatedWaypoints checks when a pod counts as one behind the waypoint that is dedicated to its resource: only if no other waypoint is in front
// of it, and the Gateway is one whose policies ACP knows, with the account that pods accept, which not everybody may use.
func TestDedicatedWaypoints(t *testing.T) {
	const use, useNamespace, canary = "istio.io/use-waypoint", "istio.io/use-waypoint-namespace", "istio.io/use-waypoint-canary"
	declared := `{"dataplane": "ambient", "version": "1.31", "waypoints": [{"resource": "r", "gateway": "w", "port": 80}]}`
	gateway := func(name, class, from string) *unstructured.Unstructured {
		return stored(gatewayResource, "istio-system", name, map[string]any{"gatewayClassName": class, "listeners": []any{
			map[string]any{"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": from,
				"selector": map[string]any{"matchLabels": map[string]any{"site": "shop"}}}}}}})
	}
	selecting := func(selector map[string]any) *unstructured.Unstructured {
		return stored(gatewayResource, "istio-system", "w", map[string]any{"gatewayClassName": "istio-waypoint", "listeners": []any{
			map[string]any{"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": "Selector", "selector": selector}}}}})
	}
	expression := func(key, operator string) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": operator, "values": []any{"shop"}}}}
	}
	account := gateway("w", "istio-waypoint", "Selector")
	account.SetAnnotations(map[string]string{"networking.istio.io/service-account": "other"})
	annotated := func(namespace, account string) *unstructured.Unstructured {
		u := stored(gatewayResource, namespace, "other", map[string]any{"gatewayClassName": "istio"})
		u.SetAnnotations(map[string]string{"networking.istio.io/service-account": account})
		return u
	}
	service := func(labels ...string) *unstructured.Unstructured {
		return stored(serviceResource, "shop", "redis", map[string]any{"selector": map[string]any{"app": "redis"}}, labels...)
	}
	good := gateway("w", "istio-waypoint", "Selector")
	inRoot := service(use, "w", useNamespace, "istio-system")
	for _, c := range []struct {
		reason   string
		objects  []*unstructured.Unstructured
		declared string
		want     string
		unsuited string
	}{
		{"it is", []*unstructured.Unstructured{good, inRoot}, declared, "w", ""},
		{"it is not declared", []*unstructured.Unstructured{good, inRoot}, `{"dataplane": "ambient", "version": "1.31"}`, "", ""},
		{"a Gateway with this name elsewhere", []*unstructured.Unstructured{
			stored(gatewayResource, "shop", "w", map[string]any{"gatewayClassName": "istio-waypoint"}), service(use, "w")}, declared, "",
			"istio-system/w does not exist"},
		{"its class is another one", []*unstructured.Unstructured{gateway("w", "istio-agentgateway-waypoint", "Selector"), inRoot}, declared, "",
			"gatewayClassName"},
		{"its account is another one", []*unstructured.Unstructured{account, inRoot}, declared, "", "service-account"},
		{"everybody may use it", []*unstructured.Unstructured{gateway("w", "istio-waypoint", "All"), inRoot}, declared, "", "from is All"},
		{"its selector is missing", []*unstructured.Unstructured{selecting(nil), inRoot}, declared, "", "every namespace"},
		{"its selector is empty", []*unstructured.Unstructured{selecting(map[string]any{}), inRoot}, declared, "", "every namespace"},
		{"its selector only excludes", []*unstructured.Unstructured{selecting(expression("site", "NotIn")), inRoot}, declared, "", "every namespace"},
		{"every namespace has the label", []*unstructured.Unstructured{selecting(expression("kubernetes.io/metadata.name", "Exists")), inRoot}, declared, "",
			"every namespace"},
		{"its selector names some", []*unstructured.Unstructured{selecting(expression("kubernetes.io/metadata.name", "In")), inRoot}, declared, "w", ""},
		{"another Gateway has its account", []*unstructured.Unstructured{good, annotated("istio-system", "w"), inRoot}, declared, "", "the Gateway other"},
		{"another one elsewhere has an account with its name", []*unstructured.Unstructured{good, annotated("shop", "w"), inRoot}, declared, "w", ""},
		{"another Gateway has another account", []*unstructured.Unstructured{good, annotated("istio-system", "v"), inRoot}, declared, "w", ""},
		{"the default account of another Gateway is its account", []*unstructured.Unstructured{gateway("w-istio", "istio-waypoint", "Selector"),
			stored(gatewayResource, "istio-system", "w", map[string]any{"gatewayClassName": "istio"}), service(use, "w-istio", useNamespace, "istio-system")},
			strings.Replace(declared, `"w"`, `"w-istio"`, 1), "", "the Gateway w has"},
		{"another Service uses another one", []*unstructured.Unstructured{good, inRoot, stored(gatewayResource, "shop", "v", nil),
			stored(serviceResource, "shop", "also", map[string]any{"selector": map[string]any{"app": "redis"}}, use, "v")}, declared, "", ""},
		{"a part of its connections pass another one", []*unstructured.Unstructured{good, stored(gatewayResource, "shop", "v", nil),
			service(use, "w", useNamespace, "istio-system", canary, "v")}, declared, "", ""},
		{"the pod is behind none", []*unstructured.Unstructured{good, service()}, declared, "", ""},
	} {
		w, why := readWaypoints(t.Context(), reading(t, c.objects...), Istio{GatewayAPI: true, Declared: c.declared})
		if !why.IsZero() {
			t.Fatal(why.Text)
		}
		pod := &metav1.PartialObjectMetadata{}
		pod.SetNamespace("shop")
		pod.SetLabels(map[string]string{"app": "redis"})
		if got := w.dedicatedTo(w.of(pod)); got != c.want {
			t.Errorf("%s: behind %q", c.reason, got)
		}
		got := ""
		for _, why := range w.dedicated {
			got += why.Text
		}
		if (got == "") != (c.unsuited == "") || !strings.Contains(got, c.unsuited) {
			t.Errorf("%s: unsuited because of %q", c.reason, got)
		}
	}
}

// TestClassOfAccount checks which names of Gateways are those of service accounts of a class.
func TestClassOfAccount(t *testing.T) {
	keys := []Key{{Class: "redis"}, {Class: "any", ServiceAccount: "{id}"}, {Class: "app", ServiceAccount: "app-{id}-sa"}}
	for account, want := range map[string]string{"app-1-sa": "app", "app--sa": "", "app-1": "", "shop-waypoint": ""} {
		if got := ClassOfAccount(keys, account); got != want {
			t.Errorf("%s: %q, want %q", account, got, want)
		}
	}
}

// TestWaypointOther checks which pods are reported for a resource with and without a waypoint.
func TestWaypointOther(t *testing.T) {
	label := federation.Label{Key: "app", Value: "redis"}
	p := MeshPods{
		BehindWaypoint: LabeledPods{Pods: map[federation.Label][]string{label: {"shop/a (shop/v)"}}},
		Dedicated:      LabeledPods{Pods: map[federation.Label][]string{label: {"shop/b (istio-system/w)", "shop/c (istio-system/ww)"}}},
	}
	for gateway, want := range map[string]string{
		"w": "shop/a (shop/v), shop/c (istio-system/ww)",
		"":  "shop/a (shop/v), shop/b (istio-system/w), shop/c (istio-system/ww)",
	} {
		if got := p.WaypointOther("app", "redis", gateway).Text; got != want {
			t.Errorf("%q: %q, want %q", gateway, got, want)
		}
	}
}
