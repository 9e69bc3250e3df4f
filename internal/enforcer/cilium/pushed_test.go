package cilium_test

import (
	"slices"
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
		got, ok := cilium.EmptyWildcardObject(o.Name, o.Labels[v1alpha1.LabelUnit], o.Spec)
		if !ok {
			t.Fatal("it cannot be emptied")
		}
		if diff := cmp.Diff(want.Objects[0], got); diff != "" {
			t.Errorf("label values %v: -want +got:\n%s", values, diff)
		}
	}
	if _, ok := cilium.EmptyWildcardObject("acp-x", "x", map[string]any{"ingress": []any{}}); ok {
		t.Error("a spec that selects nothing was emptied into one that selects everything")
	}
}

// TestLabels: the labels of peers and of pods are found wherever they are; what is no pod's label, or selects by absence, is not.
func TestLabels(t *testing.T) {
	var got []string
	cilium.SelectedLabels(map[string]any{
		"endpointSelector": map[string]any{"matchLabels": map[string]any{"k8s:com.trip/redis": "bobs", "reserved:host": ""}},
		"ingress": []any{map[string]any{"fromEndpoints": []any{map[string]any{"matchExpressions": []any{
			map[string]any{"key": "k8s:com.trip/appid", "operator": "In", "values": []any{"888", "889"}},
			map[string]any{"key": "k8s:com.trip/appid", "operator": "NotIn", "values": []any{""}},
		}}}}},
		"ingressDeny": "not a list",
	}, func(key, value string) { got = append(got, key+"="+value) })
	slices.Sort(got)
	if diff := cmp.Diff([]string{"com.trip/appid=888", "com.trip/appid=889", "com.trip/redis=bobs"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWithoutAllows checks what remains of a spec without its allows.
func TestWithoutAllows(t *testing.T) {
	rule := func(effect policy.Effect, value string) policy.Rule {
		return policy.Rule{Effect: effect, Subjects: []policy.SubjectSelector{{LabelKey: "com.trip/appid", Values: []string{value}}},
			Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}
	}
	u := policy.Unit{ID: "redis-x", Resource: "trnv1:rsc:trip-com:redis:clusters:x", LabelKey: "com.trip/redis-cluster", LabelValue: "x",
		Mode: v1alpha1.ModeEnforce, Rules: []policy.Rule{rule(policy.Allow, "888"), rule(policy.Deny, "999")},
		OtherPorts: v1alpha1.OtherPortsAllow, OpenPorts: []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}}}
	full, err := cilium.Enforcer{}.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	u.Rules = nil
	want, err := cilium.Enforcer{}.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Objects[0].Object.Spec, cilium.WithoutAllows(full.Objects[0].Object.Spec)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if left := cilium.WithoutAllows(full.Objects[1].Object.Spec); left != nil {
		t.Errorf("%v remains of an object that only opens", left)
	}
}
