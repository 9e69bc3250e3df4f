package istio

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// refusedByWebhook is in the answer of the API server if istiod's webhook refuses an object.
const refusedByWebhook = `admission webhook "validation.istio.io" denied the request`

// TestAPIServerAcceptsPolicies checks that an API server with Istio's kinds and istiod's webhook accepts every policy without a warning.
func TestAPIServerAcceptsPolicies(t *testing.T) {
	p := startControlPlane(t)
	objects := 0
	all := append(newWorlds(t, members, 0, 100, nil), newWorlds(t, []string{ambient}, 100, 50, nil)...)
	for _, w := range all {
		for i := range w.objects {
			objects++
			if err := p.validate(t.Context(), policyObject(&w.objects[i])); err != nil {
				t.Errorf("%s of the world of seed %d: %v\n%v", w.objects[i].Name, w.seed, err, w.objects[i].Spec)
			}
		}
	}
	if objects < 200 {
		t.Errorf("only %d policies were validated", objects)
	}
}

// TestWebhookRefusesInvalidPolicies checks that istiod's webhook is called for what is written to the API server: it refuses policies that
// Istio's kinds accept, new ones and changes.
func TestWebhookRefusesInvalidPolicies(t *testing.T) {
	p := startControlPlane(t)
	policy := func(spec map[string]any) *enforcer.Object {
		spec["selector"] = map[string]any{"matchLabels": map[string]any{istiotest.RedisLabel: "a"}}
		return &enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: "policy", Spec: spec}
	}
	from := func(source map[string]any) map[string]any {
		return map[string]any{"action": "ALLOW", "rules": []any{map[string]any{"from": []any{map[string]any{"source": source}}}}}
	}
	for name, tc := range map[string]struct {
		spec map[string]any
		want string
	}{
		"DenyWithoutRules": {map[string]any{"action": "DENY"}, refusedByWebhook},
		"NoRange":          {from(map[string]any{"ipBlocks": []any{"10.0.0.0/33"}}), refusedByWebhook},
		"NoPort": {map[string]any{"action": "ALLOW", "rules": []any{
			map[string]any{"to": []any{map[string]any{"operation": map[string]any{"ports": []any{"http"}}}}}}}, refusedByWebhook},
		"Closed":    {map[string]any{"action": "ALLOW"}, ""},
		"Principal": {from(map[string]any{"principals": []any{"*/sa/app-888"}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := p.validate(t.Context(), policyObject(policy(tc.spec))); {
			case tc.want == "" && err != nil:
				t.Errorf("a valid policy: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	u := policyObject(policy(from(map[string]any{"principals": []any{"*/sa/app-888"}})))
	if err := p.client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	change := []byte(`{"spec": {"action": "DENY", "rules": null}}`)
	if err := p.client.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, change)); err == nil || !strings.Contains(err.Error(), refusedByWebhook) {
		t.Errorf("a change that makes a policy invalid: got %v, want %q", err, refusedByWebhook)
	}
}
