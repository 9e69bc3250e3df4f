package istio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"istio.io/istio/pkg/workloadapi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

const (
	addressType = "type.googleapis.com/istio.workload.Address"
	// podLabel is the label of the pods that the preflight looks for; its value is the name of the pod.
	podLabel = "test/pod"
	// waypointAccount is the identity of a waypoint.
	waypointAccount = "cluster.local/ns/" + ambientNamespace + "/sa/waypoint"

	waypointNamespaces, waypointsEach, servicesEach, podsEach = 8, 2, 6, 12
	applications                                              = 5
)

// randomWaypoints generates objects that use waypoints at random.
type randomWaypoints struct {
	*rand.Rand
	addresses int
}

// chance returns true in one of n cases.
func (r randomWaypoints) chance(n int) bool { return r.IntN(n) == 0 }

// namespace returns the name of one of the namespaces.
func (r randomWaypoints) namespace() string { return fmt.Sprint("space-", r.IntN(waypointNamespaces)) }

// uses adds the labels by which an object names a waypoint, or none, in one of n cases.
func (r randomWaypoints) uses(labels map[string]string, n int) map[string]string {
	if !r.chance(n) {
		return labels
	}
	labels["istio.io/use-waypoint"] = []string{"none", "missing", "waypoint-0", "waypoint-1", "waypoint-1"}[r.IntN(5)]
	if r.chance(3) {
		labels["istio.io/use-waypoint-namespace"] = r.namespace()
	}
	return labels
}

// carries adds the label of what a waypoint carries.
func (r randomWaypoints) carries(labels map[string]string) map[string]string {
	if of := []string{"", "", "service", "workload", "workload", "all", "none"}[r.IntN(7)]; of != "" {
		labels["istio.io/waypoint-for"] = of
	}
	return labels
}

func (r randomWaypoints) application() string { return fmt.Sprint("app-", r.IntN(applications)) }

// object returns an object of a kind.
func object(group, kind, namespace, name string, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(group + "/v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

// objects returns the objects of a random world in the order in which they have to be created.
func (r *randomWaypoints) objects() []client.Object {
	var out []client.Object
	for i, class := range []string{"plain", "of-pods"} {
		labels := map[string]string{}
		if i > 0 {
			labels["istio.io/waypoint-for"] = "workload"
		}
		out = append(out, object("gateway.networking.k8s.io", "GatewayClass", "", class, labels, map[string]any{"controllerName": "istio.io/mesh-controller"}))
	}
	for n := range waypointNamespaces {
		in := fmt.Sprint("space-", n)
		labels := r.uses(map[string]string{"istio.io/dataplane-mode": "ambient"}, 2)
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in, Labels: labels}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "default"}})
		for i := range waypointsEach {
			out = append(out, object("gateway.networking.k8s.io", "Gateway", in, fmt.Sprint("waypoint-", i), r.carries(map[string]string{}), map[string]any{
				"gatewayClassName": []string{"plain", "of-pods"}[r.IntN(2)],
				"listeners": []any{map[string]any{"name": "mesh", "port": int64(15008), "protocol": "HBONE",
					"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": "All"}}}},
			}))
		}
		for i := range servicesEach {
			name, selector := fmt.Sprint("service-", i), map[string]string{"app": r.application()}
			if r.chance(4) {
				selector["also"] = "this"
			}
			labels := r.uses(map[string]string{}, 2)
			if !r.chance(4) {
				out = append(out, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: labels},
					Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 6379}}}})
				continue
			}
			r.addresses++
			selected := map[string]any{}
			for k, v := range selector {
				selected[k] = v
			}
			out = append(out, object("networking.istio.io", "ServiceEntry", in, name, labels, map[string]any{
				"hosts": []any{name + "." + in + ".example.com"}, "addresses": []any{fmt.Sprint("240.240.0.", r.addresses)},
				"ports":      []any{map[string]any{"number": int64(6379), "name": "tcp", "protocol": "TCP"}},
				"resolution": "STATIC", "location": "MESH_INTERNAL", "workloadSelector": map[string]any{"labels": selected},
			}))
		}
		for i := range podsEach {
			name := fmt.Sprintf("pod-%d-%d", n, i)
			labels := r.uses(map[string]string{podLabel: name, "app": r.application()}, 4)
			if r.chance(2) {
				labels["also"] = "this"
			}
			out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: labels},
				Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "default", Containers: []corev1.Container{{Name: "server", Image: "server"}}}})
		}
	}
	return out
}

// create creates an object with the status of one that is ready. The address of a waypoint is its name.
func (p *controlPlane) create(ctx context.Context, o client.Object, address string) error {
	if err := p.client.Create(ctx, o); err != nil {
		return fmt.Errorf("create %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = runningAt(address)
	case *unstructured.Unstructured:
		if o.GetKind() != "Gateway" {
			return nil
		}
		o.Object["status"] = map[string]any{"addresses": []any{map[string]any{"type": "Hostname", "value": o.GetName()}}}
	default:
		return nil
	}
	if err := p.client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("write the status of %s: %w", o.GetName(), err)
	}
	return nil
}

// waypointsOf returns the waypoints that ztunnel sends connections to each pod through, by the name of the pod, as namespace/name, sorted.
func waypointsOf(ctx context.Context, istiod grpc.ClientConnInterface) (map[string][]string, error) {
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
	services, workloads := map[string]*workloadapi.Service{}, []*workloadapi.Workload{}
	if err := readAll(stream, node, addressType, func() proto.Message { return &workloadapi.Address{} }, func(m proto.Message) {
		a := m.(*workloadapi.Address) //nolint:forcetypeassert // made by the function above
		if s := a.GetService(); s != nil {
			services[s.GetNamespace()+"/"+s.GetHostname()] = s
		}
		if w := a.GetWorkload(); w != nil {
			workloads = append(workloads, w)
		}
	}); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, w := range workloads {
		through := map[string]bool{}
		add := func(g *workloadapi.GatewayAddress) {
			if at := g.GetHostname(); at != nil {
				through[at.GetNamespace()+"/"+at.GetHostname()] = true
			}
		}
		add(w.GetWaypoint())
		for name := range w.GetServices() {
			if services[name] == nil {
				return nil, fmt.Errorf("istiod does not send the service %s that it names", name)
			}
			add(services[name].GetWaypoint())
		}
		out[w.GetName()] = slices.Sorted(maps.Keys(through))
	}
	return out, nil
}

// TestWaypointsAreDetected compares the pods that the preflight reports behind waypoints with what istiod sends to ztunnel about them.
func TestWaypointsAreDetected(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	r := &randomWaypoints{Rand: rand.New(rand.NewPCG(*firstSeed, 17))} //nolint:gosec // reproducible
	t.Logf("seed %d", *firstSeed)
	var pods []string
	for i, o := range r.objects() {
		if err := p.create(t.Context(), o, fmt.Sprintf("10.211.%d.%d", i/250, 1+i%250)); err != nil {
			t.Fatal(err)
		}
		if _, ok := o.(*corev1.Pod); ok {
			pods = append(pods, o.GetName())
		}
	}
	found := preflight.ReadMeshPods(t.Context(), p.config, preflight.Istio{Served: true, GatewayAPI: true,
		Declared: `{"dataplane": "ambient", "version": "1.31"}`}, []string{podLabel})
	if why := found.BehindWaypoint.Unread; !why.IsZero() {
		t.Fatal(why.Text)
	}
	compare := func() (through int, err error) {
		state, err := waypointsOf(t.Context(), p.istiod)
		for _, pod := range pods {
			want, known := state[pod]
			var got []string
			for _, text := range found.BehindWaypoint.Pods[federation.Label{Key: podLabel, Value: pod}] {
				_, names, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (")
				got = strings.Split(names, ", ")
			}
			if err == nil && !known {
				err = fmt.Errorf("istiod does not send %s", pod)
			}
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("connections to %s pass %v; detected is %v", pod, want, got)
			}
			if len(want) > 0 {
				through++
			}
		}
		return through, err
	}
	deadline := time.Now().Add(pushTimeout)
	for {
		through, err := compare()
		if err == nil {
			t.Logf("connections to %d of %d pods pass a waypoint", through, len(pods))
			if *firstSeed == 0 && (through < len(pods)/5 || through > len(pods)*4/5) {
				t.Error("one of both cases is too rare: a mistake there would not be noticed")
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // poll interval
	}
}

// TestWaypointHidesClients checks why a resource behind a waypoint does not count as enforced: if connections reach ztunnel with the identity
// of a waypoint, clients that a policy allows by name are refused, and clients that it denies by name are let through.
func TestWaypointHidesClients(t *testing.T) {
	p := startControlPlane(t)
	refused := 0
	all := newWorlds(t, []string{ambient}, 0, 60, nil)
	inAmbient(t, p, all, func(state map[string]connectionPolicies) {
		for _, w := range all {
			for i, labels := range w.generator.Destinations() {
				for range connections {
					x := w.generator.Connection(w.s, labels, w.member)
					if direct, through := passesThrough(t, state[podName(w, i)], x.Traffic); direct && !through {
						refused++
					}
				}
			}
		}
	})
	t.Logf("%d connections that are allowed are refused behind a waypoint", refused)
	if refused < 30 {
		t.Error("the identity of the waypoint seems not to matter")
	}

	// These are the objects that ACP renders for an allow to anyone and a deny by name, where mutual TLS is required.
	var objects []enforcer.Object
	for action, from := range map[string][]any{"ALLOW": nil, "DENY": {map[string]any{"source": map[string]any{"principals": []any{"*/sa/app-888"}}}}} {
		rule := map[string]any{"to": []any{map[string]any{"operation": map[string]any{"ports": []any{"6379"}}}}}
		if from != nil {
			rule["from"] = from
		}
		objects = append(objects, enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: "denied-" + strings.ToLower(action),
			Spec: map[string]any{"action": action, "selector": map[string]any{"matchLabels": map[string]any{"app": "denied"}}, "rules": []any{rule}}})
	}
	if err := p.write(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	if err := p.createPods(t.Context(), map[string]map[string]string{"denied": {"app": "denied"}}); err != nil {
		t.Fatal(err)
	}
	state, err := p.untilAmbient(t.Context(), map[string]int{"denied": len(objects)})
	if err != nil {
		t.Fatal(err)
	}
	if direct, through := passesThrough(t, state["denied"], istiotest.Traffic{Principal: "cluster.local/ns/a/sa/app-888", Port: 6379}); direct || !through {
		t.Errorf("a denied client passes: %t; behind a waypoint: %t", direct, through)
	}
}

// passesThrough reports whether ztunnel lets a connection through that comes directly, and one that comes through a waypoint.
func passesThrough(t *testing.T, policies connectionPolicies, x istiotest.Traffic) (direct, through bool) {
	t.Helper()
	direct, err := policies.passes(x)
	x.Principal = waypointAccount
	through, also := policies.passes(x)
	if err := errors.Join(err, also); err != nil {
		t.Fatal(err)
	}
	return direct, through
}
