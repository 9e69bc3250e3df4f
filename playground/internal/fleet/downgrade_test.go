package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/memberdowngrade"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

var protectedResource = schema.GroupVersionResource{Group: "acp.io", Version: "v1alpha1", Resource: "protectedresources"}

const (
	story = `
apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: redis}
spec:
  pattern: trnv1:rsc:trip-com:redis:clusters:*
  labelKey: com.trip/redis-cluster
  actions:
    - name: redis:connect
      ports: [{port: 6379, protocol: TCP}]
  placement: {clusterSelector: {}}
---
apiVersion: acp.io/v1alpha1
kind: SubjectClass
metadata: {name: application}
spec: {pattern: "trnv1:rsc:trip-com:iam:sa:app/*", labelKey: com.trip/appid}
---
apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: bobs}
spec: {resource: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", mode: Enforce}
---
apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: bobs}
spec:
  statements:
    - sid: one
      effect: Allow
      subjects: ["trnv1:rsc:trip-com:iam:sa:app/888"]
      actions: ["redis:connect"]
      resources: ["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"]
`
	// many is the number of policies in the downgraded member, for measuring the time to effect.
	many = 300
)

// TestDowngradeOfAMemberWithoutTheControlPlane checks that an operator can open a member while the host, KubeFed and the adapter
// are down. When they are back, they do not change the member and report the downgrade, and they apply the wanted policies of that
// time only when the operator resumes the member.
func TestDowngradeOfAMemberWithoutTheControlPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	f, s := newGuardedFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	adapter := buildAdapter(t, f)
	kill := runAdapter(t, f, adapter)
	objects, err := Parse("story", []byte(story))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Applier(Host).Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	enforces := func(member, app string) error {
		return poll(ctx, member+" does not let only app "+app+" in", func(ctx context.Context) error {
			spec, err := policyIn(ctx, t, f, member)
			if err != nil {
				return err
			}
			if closed(spec) && fmt.Sprint(peers(spec)) == "["+app+"]" {
				return nil
			}
			return fmt.Errorf("closed: %v, for %v", closed(spec), peers(spec))
		})
	}
	for _, m := range Members() {
		if err := enforces(m, "888"); err != nil {
			t.Fatal(err)
		}
	}

	// The guard refuses changes by an administrator and allows those of the break-glass group.
	if _, err := as(t, f, "m1").Resource(ccnpResource).Create(ctx, one("acp-by-hand"), metav1.CreateOptions{}); err == nil {
		t.Fatal("an administrator writes what ACP manages")
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.Layout.Kubeconfig("m1"))
	if err != nil {
		t.Fatal(err)
	}
	operator, err := memberdowngrade.NewOperator(ctx, config)
	if err != nil {
		t.Fatal(err)
	}

	// The host, KubeFed and the adapter are killed.
	kill()
	stopped := []string{"kubefed", "apiserver-host", "etcd-host"}
	for _, p := range stopped {
		if err := s.Stop(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := poll(ctx, "the control plane still runs", func(context.Context) error {
		for _, p := range s.Status() {
			if slices.Contains(stopped, p.Name) && p.State != supervisor.StateDown {
				return fmt.Errorf("%s is %s", p.Name, p.State)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	glass := breakGlass(t, f, "m1")
	for n := range many {
		if _, err := glass.Create(ctx, one(fmt.Sprintf("acp-many-%d", n)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	options := memberdowngrade.Options{Reason: "rehearsal", Now: time.Now, Opened: func(written int, took time.Duration) {
		t.Logf("%d policies were opened in %s", written, took.Round(time.Millisecond))
		t.Logf("bench downgrade_member_s %.2f s", took.Seconds())
	}}
	result, err := operator.Downgrade(ctx, options)
	if err != nil || !result.Guarded || result.Written != many+1 {
		t.Fatalf("%v, %+v", err, result)
	}
	if spec, err := policyIn(ctx, t, f, "m1"); err != nil || closed(spec) {
		t.Fatalf("m1 is closed: %v, %v", spec, err)
	}
	if err := enforces("m2", "888"); err != nil {
		t.Fatal(err)
	}
	for n := range many { // the control plane did not create these policies
		if err := glass.Delete(ctx, fmt.Sprintf("acp-many-%d", n), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	// The control plane is restarted and a grant is replaced; m1 stays as it is.
	if err := s.StartAndWait(ctx, "etcd-host", "apiserver-host"); err != nil {
		t.Fatal(err)
	}
	if err := f.startKubeFed(ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	runAdapter(t, f, adapter)
	patch := []byte(`[{"op": "replace", "path": "/spec/statements/0/subjects/0", "value": "trnv1:rsc:trip-com:iam:sa:app/889"}]`)
	policies := as(t, f, Host).Resource(schema.GroupVersionResource{Group: "acp.io", Version: "v1alpha1", Resource: "accesscontrolpolicies"})
	if _, err := policies.Patch(ctx, "bobs", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := enforces("m2", "889"); err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, "m1 is not said to be downgraded", func(ctx context.Context) error {
		if state := stateIn(ctx, t, f, "m1"); state != "Downgraded" {
			return errors.New(state)
		}
		if secret := pushedWith(t, ctx, f, "m1"); secret == "kubefed-m1" {
			return errors.New("KubeFed still has a client of it")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("the adapter knows of the downgrade, and keeps KubeFed away, %s after the host was back", time.Since(back).Round(100*time.Millisecond))
	if spec, err := policyIn(ctx, t, f, "m1"); err != nil || closed(spec) {
		t.Fatalf("somebody closed m1: %v, %v", spec, err)
	}

	resumed := time.Now()
	if _, err := operator.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	if err := enforces("m1", "889"); err != nil {
		t.Fatal(err)
	}
	t.Logf("enforced again %s after resuming", time.Since(resumed).Round(100*time.Millisecond))
	if err := poll(ctx, "m1 is not said to have it", func(ctx context.Context) error {
		if state := stateIn(ctx, t, f, "m1"); state != "Realized" {
			return errors.New(state)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// runAdapter runs the adapter until it is killed, at the latest at the end of the test.
func runAdapter(t *testing.T, f *Fleet, binary string) (kill func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	adapter := exec.CommandContext(
		ctx,
		binary,
		"--kubeconfig",
		f.Layout.Kubeconfig(Adapter),
		"--health-address=0",
		"--metrics-address=0",
		"--leader-elect=false",
		"--log-level=warn",
	)
	adapter.Stderr = logWriter{t}
	if err := adapter.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		cancel() // which kills it
		var exit *exec.ExitError
		if err := adapter.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(kill)
	return kill
}

// one returns a policy that allows no source.
func one(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"endpointSelector": map[string]any{"matchLabels": map[string]any{"nobody": "has"}},
				"enableDefaultDeny": map[string]any{"ingress": true, "egress": false}, "ingress": []any{map[string]any{}}}},
	}
}

// policyIn returns the policy of the protected resource in a member.
func policyIn(ctx context.Context, t *testing.T, f *Fleet, member string) (map[string]any, error) {
	t.Helper()
	list, err := as(t, f, member).Resource(ccnpResource).List(ctx, metav1.ListOptions{LabelSelector: "acp.io/managed-by"})
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("it has %d policies of ACP", len(list.Items))
	}
	spec, _ := list.Items[0].Object["spec"].(map[string]any)
	return spec, nil
}

func closed(spec map[string]any) bool {
	deny, _, _ := unstructured.NestedBool(spec, "enableDefaultDeny", "ingress")
	return deny
}

// peers returns the applications that a policy allows.
func peers(spec map[string]any) []string {
	raw, err := json.Marshal(spec["ingress"])
	if err != nil {
		return nil
	}
	var rules []struct {
		FromEndpoints []struct {
			MatchLabels      map[string]string
			MatchExpressions []metav1.LabelSelectorRequirement
		}
	}
	if err := json.Unmarshal(raw, &rules); err != nil {
		return nil
	}
	var out []string
	for _, r := range rules {
		for _, e := range r.FromEndpoints {
			for _, x := range e.MatchExpressions {
				if x.Key == "k8s:com.trip/appid" {
					out = append(out, x.Values...)
				}
			}
			if app := e.MatchLabels["k8s:com.trip/appid"]; app != "" {
				out = append(out, app)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func stateIn(ctx context.Context, t *testing.T, f *Fleet, member string) string {
	t.Helper()
	u, err := as(t, f, Host).Resource(protectedResource).Get(ctx, "bobs", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	clusters, _, _ := unstructured.NestedSlice(u.Object, "status", "clusters")
	for _, c := range clusters {
		if m, ok := c.(map[string]any); ok && m["name"] == member {
			return fmt.Sprint(m["state"])
		}
	}
	return "nothing is said of " + member
}

// breakGlass writes policies as a user of the break-glass group, whom the guard allows.
func breakGlass(t *testing.T, f *Fleet, member string) dynamic.ResourceInterface {
	t.Helper()
	config := f.AdminConfig(member)
	config.Impersonate = rest.ImpersonationConfig{UserName: "operator", Groups: []string{guard.BreakGlass}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(ccnpResource)
}
