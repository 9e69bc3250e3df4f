package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/cli"
	"github.com/acp-io/acp/playground/internal/parts"
)

// declarations are ACP's kinds; MODE and STATEMENTS are filled in.
const declarations = `
apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: redis}
spec:
  pattern: trnv1:rsc:trip-com:redis:clusters:*
  labelKey: com.trip/redis-cluster
  actions: [{name: "redis:connect", ports: [{port: 6379}]}]
  placement: {clusterSelector: {}}
---
apiVersion: acp.io/v1alpha1
kind: SubjectClass
metadata: {name: application}
spec:
  pattern: trnv1:rsc:trip-com:iam:sa:app/*
  labelKey: com.trip/appid
---
apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: bobs-cluster}
spec: {resource: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", mode: MODE}
---
apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: grants}
spec:
  statements:
STATEMENTS`

func statement(sid, effect, app string) string {
	return fmt.Sprintf(
		`  - {sid: %s, effect: %s, subjects: ["trnv1:rsc:trip-com:iam:sa:app/%s"], actions: ["redis:connect"],
      resources: ["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"]}
`,
		sid,
		effect,
		app,
	)
}

// wireTimeout is how long a written policy may take to hold for new connections.
const wireTimeout = 30 * time.Second

// testPolicies applies what ACP renders for a node and makes the connections that it is about.
func testPolicies(t *testing.T, n *node) {
	client := n.client(t, "node")
	w := newWire(client)
	server := startProbe(t, client, "redis", map[string]string{"com.trip/redis-cluster": "bobs-cluster"})
	startProbe(t, client, "app-888", map[string]string{"com.trip/appid": "888"})
	startProbe(t, client, "app-666", map[string]string{"com.trip/appid": "666"})
	service := startService(t, client)
	for name, to := range map[string]string{
		"its address": server, "the address of its Service": service, "the name of its Service": "redis.default.svc.cluster.local",
	} {
		eventually(t, wireTimeout, "a pod reaches another by "+name, w.connects("app-888", to+":6379", true))
	}

	policies, err := dynamic.NewForConfig(n.config(t, "node"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		reason, mode, statements string
		may                      map[string]bool
	}{
		{
			"a resource that is closed lets in only what a statement allows", "Enforce",
			statement("a", "Allow", "888"), map[string]bool{"app-888": true, "app-666": false},
		},
		{"a revoked statement closes", "Enforce", statement("b", "Allow", "666"), map[string]bool{"app-888": false, "app-666": true}},
		{
			"a deny is stronger than an allow", "Enforce",
			statement("a", "Allow", "888") + statement("b", "Allow", "666") + statement("c", "Deny", "666"),
			map[string]bool{"app-888": true, "app-666": false},
		},
		{"an audited resource is open", "Audit", statement("a", "Allow", "888"), map[string]bool{"app-888": true, "app-666": true}},
		{"and closes again", "Enforce", statement("a", "Allow", "888"), map[string]bool{"app-888": true, "app-666": false}},
	} {
		apply(t, policies, render(t, step.mode, step.statements))
		for _, app := range []string{"app-888", "app-666"} {
			eventually(t, wireTimeout, step.reason+": "+app, w.connects(app, server+":6379", step.may[app]))
		}
		for app, may := range step.may {
			// It is not a matter of the way to the resource.
			if err := w.connects(app, service+":6379", may)(t.Context()); err != nil {
				t.Errorf("%s: %s by the Service: %v", step.reason, app, err)
			}
		}
	}
	if err := policies.Resource(ccnp).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, app := range []string{"app-888", "app-666"} {
		eventually(t, wireTimeout, "a resource without policy is open: "+app, w.connects(app, server+":6379", true))
	}
}

var ccnp = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}

// render returns what ACP gives a member for the declarations.
func render(t *testing.T, mode, statements string) []*unstructured.Unstructured {
	t.Helper()
	file := filepath.Join(t.TempDir(), "declarations.yaml")
	text := strings.NewReplacer("MODE", mode, "STATEMENTS", statements).Replace(declarations)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	args := []string{"render", "-f", file, "--enforcer", "cilium", "--cluster", "node"}
	if code := cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &complaints, Now: time.Now}); code != cli.ExitFine {
		t.Fatalf("render: exit status %d: %s", code, &complaints)
	}
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(&out, 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := documents.Decode(o); {
		case errors.Is(err, io.EOF):
			if len(objects) == 0 {
				t.Fatal("nothing was rendered")
			}
			return objects
		case err != nil:
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
}

// apply makes the cluster hold these policies and no others.
func apply(t *testing.T, client dynamic.Interface, objects []*unstructured.Unstructured) {
	t.Helper()
	var names []string
	for _, o := range objects {
		if o.GetKind() != "CiliumClusterwideNetworkPolicy" {
			t.Fatalf("rendered a %s", o.GetKind())
		}
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		force := true
		if _, err := client.Resource(ccnp).
			Patch(t.Context(), o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test", Force: &force}); err != nil {
			t.Fatal(err)
		}
		names = append(names, o.GetName())
	}
	have, err := client.Resource(ccnp).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range have.Items {
		if !slices.Contains(names, o.GetName()) {
			if err := client.Resource(ccnp).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// startProbe starts a pod that answers on the port of redis, and on 8080 what the test asks it; it returns its address.
func startProbe(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) string {
	t.Helper()
	labels["probe"] = name
	yes, no := true, false
	container := func(port int32) corev1.Container {
		return corev1.Container{
			Name:            fmt.Sprintf("on-%d", port),
			Image:           parts.NodeProbeImage,
			ImagePullPolicy: corev1.PullNever,
			Args:            []string{fmt.Sprintf("--listen=:%d", port)},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(port)}},
				PeriodSeconds: 1,
			},
			SecurityContext: &corev1.SecurityContext{
				RunAsNonRoot:             &yes,
				AllowPrivilegeEscalation: &no,
				ReadOnlyRootFilesystem:   &yes,
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container(8080), container(6379)}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var address string
	eventually(t, time.Minute, "the pod "+name+" is ready", func(ctx context.Context) error {
		got, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				address = got.Status.PodIP
				return nil
			}
		}
		return fmt.Errorf("%s: %+v", got.Status.Phase, got.Status.ContainerStatuses)
	})
	return address
}

func startService(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "redis"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"probe": "redis"}, Ports: []corev1.ServicePort{{Port: 6379}}},
	}
	s, err := client.CoreV1().Services("default").Create(t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Spec.ClusterIP
}

// wire makes connections from pods. Its own way to the pods is through the API server and the node, which every policy lets in.
type wire struct {
	client kubernetes.Interface
	// namespace of the pods, and the port to which connections are made.
	namespace, port string
}

// newWire returns the connections of pods that startProbe made.
func newWire(client kubernetes.Interface) *wire {
	return &wire{client: client, namespace: "default", port: "8080"}
}

// connects returns a check that a pod can, or cannot, open a connection.
func (w *wire) connects(from, to string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := w.client.CoreV1().Pods(w.namespace).ProxyGet("http", from, w.port, "connect", map[string]string{"to": to}).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("ask %s: %w", from, err)
		}
		var result struct {
			Connected, Timeout bool
			Error              string
		}
		if err := json.Unmarshal(answer, &result); err != nil {
			return err
		}
		switch {
		case result.Connected && want, result.Timeout && !want: // Cilium drops what it refuses
			return nil
		case !result.Connected && !want:
			return fmt.Errorf("%s cannot connect to %s, but not because of a policy: %s", from, to, result.Error)
		case want:
			return fmt.Errorf("%s cannot connect to %s: %s", from, to, result.Error)
		default:
			return fmt.Errorf("%s can connect to %s", from, to)
		}
	}
}

// watch connects from pods again and again until stop is called, which fails the test if a result was ever another one.
func (w *wire) watch(t *testing.T, to string, may map[string]bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var mu sync.Mutex
	attempts, wrong := map[string]int{}, map[string]int{}
	for app, want := range may {
		done.Go(func() {
			for ctx.Err() == nil {
				data, err := w.client.CoreV1().Pods(w.namespace).ProxyGet("http", app, w.port, "connect", map[string]string{"to": to}).DoRaw(ctx)
				var result struct{ Connected bool }
				if err != nil || json.Unmarshal(data, &result) != nil {
					continue // the pod was not asked
				}
				mu.Lock()
				attempts[app]++
				if result.Connected != want {
					wrong[app]++
				}
				mu.Unlock()
			}
		})
	}
	return func() {
		t.Helper()
		cancel()
		done.Wait()
		t.Logf("attempts: %v", attempts)
		for app, want := range may {
			if attempts[app] == 0 || wrong[app] > 0 {
				t.Errorf("%s: of %d attempts, %d had another result than connected=%t", app, attempts[app], wrong[app], want)
			}
		}
	}
}
