package federation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestIstioOpening(t *testing.T) {
	// The identities know the keys of pod's labels and "team", and no other.
	pod := map[string]string{"com.trip/grpc": "fraud", "app": "fraud", namespaceKey: "pay"}
	known := func(key string) bool { return pod[key] != "" || key == "team" }
	for _, c := range []struct {
		reason, policy string
		opens, selects bool
		may            bool
	}{
		{
			"an ALLOW by the class's label",
			`{metadata: {namespace: pay}, spec: {action: ALLOW, selector: {matchLabels: {com.trip/grpc: fraud}}, ` +
				`rules: [{from: [{source: {principals: ["*"]}}]}]}}`,
			true, true, true,
		},
		{
			"ALLOW is what an action is that nobody wrote",
			`{metadata: {namespace: pay}, spec: {selector: {matchLabels: {com.trip/grpc: fraud}}, rules: [{}]}}`, true, true, true,
		},
		{
			"one for another of the class",
			`{metadata: {namespace: pay}, spec: {selector: {matchLabels: {com.trip/grpc: risk}}, rules: [{}]}}`, true, false, false,
		},
		{"without a selector it is about its namespace", `{metadata: {namespace: pay}, spec: {rules: [{}]}}`, true, true, true},
		{"which is another one", `{metadata: {namespace: web}, spec: {rules: [{}]}}`, true, false, true},
		{"in the root namespace it is about all", `{metadata: {namespace: istio-system}, spec: {rules: [{}]}}`, true, true, true},
		{
			"and by a selector about all that have the label",
			`{metadata: {namespace: istio-system}, spec: {selector: {matchLabels: {app: fraud}}, rules: [{}]}}`, true, true, true,
		},
		{"and not about others", `{metadata: {namespace: istio-system}, spec: {selector: {matchLabels: {app: web}}, rules: [{}]}}`, true, false, true},
		{"the pods lack a label that others have", `{metadata: {namespace: pay}, spec: {selector: {matchLabels: {team: x}}, rules: [{}]}}`, true, false, true},
		{
			"a label that is in no identity may be theirs",
			`{metadata: {namespace: pay}, spec: {selector: {matchLabels: {version: v1}}, rules: [{}]}}`, true, true, true,
		},
		{"an empty value is in no identity either", `{metadata: {namespace: pay}, spec: {selector: {matchLabels: {team: ""}}, rules: [{}]}}`, true, true, true},
		{
			"without rules it lets nobody in",
			`{metadata: {namespace: pay}, spec: {action: ALLOW, selector: {matchLabels: {com.trip/grpc: fraud}}}}`, false, false, false,
		},
		{"with none of them, too", `{metadata: {namespace: pay}, spec: {rules: []}}`, false, false, false},
		{"nor when nothing is said", `{metadata: {namespace: pay}}`, false, false, false},
		{"a DENY only closes", `{metadata: {namespace: pay}, spec: {action: DENY, rules: [{}]}}`, false, false, false},
		{"a CUSTOM one, too", `{metadata: {namespace: pay}, spec: {action: CUSTOM, provider: {name: x}, rules: [{}]}}`, false, false, false},
		{"AUDIT decides nothing", `{metadata: {namespace: pay}, spec: {action: AUDIT, rules: [{}]}}`, false, false, false},
		{"tried out, it decides nothing", `{metadata: {namespace: pay, annotations: {istio.io/dry-run: "true"}}, spec: {rules: [{}]}}`, false, false, false},
		{"not tried out any more", `{metadata: {namespace: pay, annotations: {istio.io/dry-run: "false"}}, spec: {rules: [{}]}}`, true, true, true},
		{
			"it is the waypoint's, and the pods decide after it",
			`{metadata: {namespace: pay}, spec: {targetRefs: [{kind: Service, name: fraud}], rules: [{}]}}`, true, false, false,
		},
		{"or the gateway's", `{metadata: {namespace: pay}, spec: {targetRef: {kind: Gateway, name: g}, rules: [{}]}}`, false, false, false},
		{"rules that nobody can read open", `{metadata: {namespace: pay}, spec: {rules: all}}`, true, true, true},
		{"a selector that nobody can read is about all", `{metadata: {namespace: pay}, spec: {selector: {matchLabels: [1]}, rules: [{}]}}`, true, true, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.policy), &u.Object); err != nil {
				t.Fatal(err)
			}
			u.SetKind(IstioPolicy.Target.Kind)
			o, err := ParseIstioAllow(u)
			if err != nil || o.Opens() != c.opens || o.Selects(pod, known) != c.selects || o.MaySelect("com.trip/grpc", "fraud") != c.may {
				t.Errorf("opens %v, selects %v, may select %v, %v", o.Opens(), o.Selects(pod, known), o.MaySelect("com.trip/grpc", "fraud"), err)
			}
		})
	}
}

// TestIstioOpensWaypoints checks to which waypoints in Istio's root namespace a policy may let connections in.
func TestIstioOpensWaypoints(t *testing.T) {
	for _, c := range []struct {
		reason, policy string
		own, other     bool
	}{
		{"its Gateway", `{metadata: {namespace: istio-system}, spec: {targetRefs: [{kind: Gateway, name: own}], rules: [{}]}}`, true, false},
		{"so it was written earlier", `{metadata: {namespace: istio-system}, spec: {targetRef: {kind: Gateway, name: own}, rules: [{}]}}`, true, false},
		{"a Gateway of another namespace", `{metadata: {namespace: pay}, spec: {targetRefs: [{kind: Gateway, name: own}], rules: [{}]}}`, false, false},
		{"every waypoint", `{metadata: {namespace: istio-system}, spec: {targetRefs: [{kind: GatewayClass, name: istio-waypoint}], rules: [{}]}}`, true, true},
		{"which only the root namespace can", `{metadata: {namespace: pay}, spec: {targetRefs: [{kind: GatewayClass, name: istio-waypoint}], rules: [{}]}}`,
			false, false},
		{"a Service may use any", `{metadata: {namespace: pay}, spec: {targetRefs: [{kind: Service, name: shop}], rules: [{}]}}`, true, true},
		{"a ServiceEntry, too", `{metadata: {namespace: pay}, spec: {targetRefs: [{kind: ServiceEntry, name: shop}], rules: [{}]}}`, true, true},
		{"a deny opens nothing",
			`{metadata: {namespace: istio-system}, spec: {action: DENY, targetRefs: [{kind: Gateway, name: own}], rules: [{}]}}`, false, false},
		{"nor does one without rules", `{metadata: {namespace: istio-system}, spec: {targetRefs: [{kind: Gateway, name: own}]}}`, false, false},
		{"nor one of pods", `{metadata: {namespace: istio-system}, spec: {rules: [{}]}}`, false, false},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.policy), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetKind(IstioPolicy.Target.Kind)
		u.SetName("theirs")
		o, err := ParseIstioAllow(u)
		if err != nil {
			t.Fatal(err)
		}
		found := FindIstioExposure([]IstioAllow{o}, nil, nil, func(func([]Handle)) {})
		if own, other := found.OpenedBy(WaypointKey, "own") != "", found.OpenedBy(WaypointKey, "other") != ""; own != c.own || other != c.other {
			t.Errorf("%s: opens its own %t, another one %t", c.reason, own, other)
		}
		if found.Equal(IstioExposure{}) == c.own {
			t.Errorf("%s: a change would not be noticed", c.reason)
		}
	}
}

// TestOwnWaypointPoliciesAreOwn checks that ACP's policy of a waypoint does not count as one of others, and that one with its name for another
// waypoint does.
func TestOwnWaypointPoliciesAreOwn(t *testing.T) {
	parse := func(gateway string) IstioAllow {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"targetRefs": []any{map[string]any{"kind": "Gateway", "name": gateway}}, "rules": []any{map[string]any{}}}}}
		u.SetNamespace("istio-system")
		o, err := ParseIstioAllow(u)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	own := &Object{TemplateSpec: map[string]any{"targetRefs": []any{map[string]any{"kind": "Gateway", "name": "a"}}},
		Overrides: map[string]Override{"m2": {Spec: map[string]any{"targetRefs": []any{map[string]any{"kind": "Gateway", "name": "b"}}}}}}
	for gateway, want := range map[string]bool{"a": true, "b": true, "c": false} {
		p := parse(gateway)
		if got := own.isOf(&p); got != want {
			t.Errorf("%s: own %t", gateway, got)
		}
	}
}
