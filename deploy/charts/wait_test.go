package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/wait"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/testenv"
)

// kubectlWait runs kubectl wait for objects of a host.
func (c *cluster) kubectlWait(ctx context.Context, timeout time.Duration, conditions []string, objects ...string) error {
	getter := genericclioptions.NewConfigFlags(false)
	getter.KubeConfig = &c.kubeconfig
	flags := wait.NewWaitFlags(getter, genericiooptions.NewTestIOStreamsDiscard())
	flags.Timeout = timeout
	for _, name := range conditions {
		flags.ForCondition = append(flags.ForCondition, "condition="+name)
	}
	o, err := flags.ToOptions(objects)
	if err != nil {
		return fmt.Errorf("kubectl wait: %w", err)
	}
	return o.RunWaitContext(ctx)
}

// waitObjects are two resources, of which the second one is in Observe, and a grant of the first one.
const waitObjects = demoObjects + `---
apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: seen}
spec: {resource: "trnv1:rsc:trip-com:redis:clusters:seen", mode: Observe}
---
apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: bobs-cluster}
spec:
  statements:
    - sid: one
      effect: Allow
      subjects: ["trnv1:rsc:trip-com:iam:sa:app/app-1"]
      actions: ["redis:connect"]
      resources: ["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"]
`

// TestKubectlWait runs kubectl wait as docs/cli.md describes it for pipelines, against the real adapter and the direct engine: it ends when the
// member has what was applied, also after a change, and neither for a refused statement, nor in Observe, nor while nothing carries the change.
func TestKubectlWait(t *testing.T) {
	adapter := program(t, "acp-adapter")
	host, member := start(t), start(t, "controllers/testdata/member")
	host.namespace(t, "acp-system", nil)
	host.install(t, "acp-kubefed", nil)
	host.install(t, "acp", map[string]any{"adapter": map[string]any{"webhook": map[string]any{"enabled": false}}})
	joinMember(t, host, member, "", func(j *membership.Join) { j.Cluster.Engine = federation.EngineDirect })
	settingsMap, ok := host.get(t, "v1", "ConfigMap", "acp-system", "acp-adapter")
	if !ok {
		t.Fatal("there are no settings of the adapter")
	}
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, file := settings(t, settingsMap, folder)
	account := host.account(t, "acp-system", "acp-adapter")
	runs := begin(
		t,
		adapter,
		"--config="+file,
		"--kubeconfig="+account,
		"--health-address="+testenv.FreeAddress(t),
		"--metrics-address="+testenv.FreeAddress(t),
	)
	for _, o := range objects(t, waitObjects) {
		host.create(t, o.Object)
	}
	both := []string{"Compiled", "Realized"}
	const long, short = time.Minute, 2 * time.Second
	if err := host.kubectlWait(t.Context(), long, both, "accesscontrolpolicy/bobs-cluster", "protectedresource/bobs-cluster"); err != nil {
		t.Fatalf("what was applied: %v", err)
	}
	rules := func() string {
		list, err := member.resource(t, "cilium.io/v2", "CiliumClusterwideNetworkPolicy", "").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		spec, err := json.Marshal(list.Items[0].Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		return string(spec)
	}
	policies := host.resource(t, "acp.io/v1alpha1", "AccessControlPolicy", "")
	add := func(sid, subject string) {
		t.Helper()
		u, err := policies.Get(t.Context(), "bobs-cluster", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		statements, _, _ := unstructured.NestedSlice(u.Object, "spec", "statements")
		next := map[string]any{"sid": sid, "effect": "Allow", "subjects": []any{subject}, "actions": []any{"redis:connect"},
			"resources": []any{"trnv1:rsc:trip-com:redis:clusters:bobs-cluster"}}
		if err := unstructured.SetNestedSlice(u.Object, append(statements, next), "spec", "statements"); err != nil {
			t.Fatal(err)
		}
		if _, err := policies.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The status of the former generation does not count, so the member has each change when the command ends.
	for n := 2; n <= 6; n++ {
		application := fmt.Sprint("app-", n)
		if before := rules(); strings.Contains(before, application) {
			t.Fatalf("%s is let in already: %s", application, before)
		}
		add(fmt.Sprint("more-", n), "trnv1:rsc:trip-com:iam:sa:app/"+application)
		if err := host.kubectlWait(t.Context(), long, both, "accesscontrolpolicy/bobs-cluster"); err != nil {
			t.Fatalf("a change: %v", err)
		}
		if after := rules(); !strings.Contains(after, application) {
			t.Fatalf("the command ended before the member had the change: %s", after)
		}
	}
	if err := host.kubectlWait(t.Context(), short, both, "protectedresource/seen"); err == nil {
		t.Error("a resource in Observe is realized")
	}
	add("refused", "trnv1:rsc:trip-com:nobody:sa:app/1")
	if err := host.kubectlWait(t.Context(), long, []string{"Realized"}, "accesscontrolpolicy/bobs-cluster"); err != nil {
		t.Errorf("Realized is about the statements that became part of a unit: %v", err)
	}
	if err := host.kubectlWait(t.Context(), short, both, "accesscontrolpolicy/bobs-cluster"); err == nil {
		t.Error("a policy with a refused statement is compiled")
	}
	// Nothing writes statuses any more: those of the former generation stay.
	runs.stop()
	add("late", "trnv1:rsc:trip-com:iam:sa:app/app-9")
	if err := host.kubectlWait(t.Context(), short, []string{"Realized"}, "accesscontrolpolicy/bobs-cluster"); err == nil {
		t.Error("a change is realized without an adapter")
	}
}
