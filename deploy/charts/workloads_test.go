package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/deploy"
)

// TestPodsAreThoseOfTheManifests compares how the containers are run, probed and confined with deploy/workloads, and the webhook's rules with
// deploy/webhook, so that an installation without Helm is the same.
func TestPodsAreThoseOfTheManifests(t *testing.T) {
	want := map[string]any{}
	for _, folder := range []string{"workloads", "webhook"} {
		text, err := deploy.Render(folder, deploy.Names{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects(t, text) {
			describe(want, o)
		}
	}
	got := map[string]any{}
	for _, o := range rendered(t, "acp", map[string]any{"collector": map[string]any{"enabled": true,
		"hubble": map[string]any{"relays": map[string]any{"m1": "r:4245"}, "tls": map[string]any{"existingSecret": "h", "serverName": "s"}}}}) {
		describe(got, o)
	}
	if len(want) != 4 {
		t.Errorf("%d things to compare, want 4", len(want))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the manifests and the chart differ: %s", d)
	}
}

// describe notes what has to be the same.
func describe(into map[string]any, o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "Deployment":
		pod, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		context, _ := pod["securityContext"].(map[string]any)
		delete(context, "fsGroupChangePolicy") // it only saves time
		out := map[string]any{"context": context, "grace": pod["terminationGracePeriodSeconds"], "account": pod["serviceAccountName"]}
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		strategy, _, _ := unstructured.NestedString(o.Object, "spec", "strategy", "type")
		out["replicas"], out["strategy"] = replicas, strategy
		for _, c := range pod["containers"].([]any) {
			container := c.(map[string]any)
			for _, key := range []string{"name", "args", "ports", "startupProbe", "readinessProbe", "livenessProbe", "securityContext", "resources"} {
				out[key] = container[key]
			}
		}
		into[o.GetName()] = out
	case "ValidatingWebhookConfiguration":
		var all []any
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, h := range hooks {
			hook := h.(map[string]any)
			client := hook["clientConfig"].(map[string]any)
			delete(client, "caBundle")
			delete(client["service"].(map[string]any), "port") // 443 is the default
			all = append(all, hook)
		}
		into["webhook"] = all
	}
}
