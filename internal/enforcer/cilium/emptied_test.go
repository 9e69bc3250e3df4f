package cilium_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

// TestEmptied: a wildcard's object that is emptied is what its unit without statements is rendered as.
func TestEmptied(t *testing.T) {
	for _, values := range [][]string{nil, {"team-a", "team-b"}} {
		u := policy.Unit{ID: "redis-x", Resource: "trnv1:rsc:trip-com:redis:clusters:*", Wildcard: true, LabelKey: "com.trip/redis-cluster",
			LabelValues: values, Mode: v1alpha1.ModeAudit, Rules: []policy.Rule{{Effect: policy.Allow, Anyone: true,
				Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}
		full, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		u.Rules = nil
		want, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		o := full.Objects[0].Object
		got, ok := cilium.Emptied(o.Name, o.Labels[v1alpha1.LabelUnit], o.Spec)
		if !ok {
			t.Fatal("it cannot be emptied")
		}
		if diff := cmp.Diff(want.Objects[0], got); diff != "" {
			t.Errorf("label values %v: -want +got:\n%s", values, diff)
		}
	}
	if _, ok := cilium.Emptied("acp-x", "x", map[string]any{"ingress": []any{}}); ok {
		t.Error("a spec that selects nothing was emptied into one that selects everything")
	}
}
