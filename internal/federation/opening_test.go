package federation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// all keys are in identities.
func all(string) bool { return true }

func TestOpening(t *testing.T) {
	redis := map[string]string{"com.trip/redis": "bobs", "app": "redis", "io.kubernetes.pod.namespace": "data"}
	for _, c := range []struct {
		reason, policy string
		opens, selects bool
		may            bool
	}{
		{"a NetworkPolicy that lets somebody in", `{kind: NetworkPolicy, metadata: {namespace: data}, spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}}`, true, true, true},
		{"one in another namespace", `{kind: NetworkPolicy, metadata: {namespace: web}, spec: {podSelector: {}, ingress: [{}]}}`, true, false, true},
		{"one that only closes", `{kind: NetworkPolicy, metadata: {namespace: data}, spec: {podSelector: {}, policyTypes: [Ingress]}}`, false, false, false},
		{"one about egress alone", `{kind: NetworkPolicy, metadata: {namespace: data}, spec: {podSelector: {}, policyTypes: [Egress], ingress: [{}]}}`, false, false, false},
		{"one for other pods", `{kind: NetworkPolicy, metadata: {namespace: data}, spec: {podSelector: {matchLabels: {app: web}}, ingress: [{}]}}`, true, false, true},
		{"a cluster-wide policy by the class's label", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchLabels: {"k8s:com.trip/redis": bobs}}, ingress: [{fromEntities: [all]}]}}`, true, true, true},
		{"one for another of the class", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchLabels: {com.trip/redis: anns}}, ingress: [{fromEntities: [all]}]}}`, true, false, false},
		{"one for all but these", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchExpressions: [{key: com.trip/redis, operator: DoesNotExist}]}, ingress: [{fromEntities: [all]}]}}`, true, false, false},
		{"one that leaves this one out", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchExpressions: [{key: "any:com.trip/redis", operator: NotIn, values: [bobs]}]}, ingress: [{fromEntities: [all]}]}}`, true, false, false},
		{"one that lists this one", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchExpressions: [{key: com.trip/redis, operator: In, values: [anns, bobs]}]}, ingress: [{fromCIDR: [10.0.0.0/8]}]}}`, true, true, true},
		{"rules beside the spec", `{kind: CiliumClusterwideNetworkPolicy, specs: [{endpointSelector: {}, ingress: [{fromEndpoints: [{}]}]}]}`, true, true, true},
		{"a selector that nobody can read opens everything", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchExpressions: [{key: com.trip/redis, operator: Like}]}, ingress: [{fromEntities: [all]}]}}`, true, true, true},
		{"denies let nobody in", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {}, ingressDeny: [{fromEntities: [world]}]}}`, false, false, false},
		{"an empty rule lets nobody in", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {}, ingress: [{}]}}`, false, false, false},
		{"the own node is always let in", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {}, ingress: [{fromEntities: [host, health]}]}}`, false, false, false},
		{"other nodes are not", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {}, ingress: [{fromEntities: [host, remote-node]}]}}`, true, true, true},
		{"a rule about nodes is about no pod", `{kind: CiliumClusterwideNetworkPolicy, spec: {nodeSelector: {}, ingress: [{fromEntities: [all]}]}}`, false, false, false},
		{"a Cilium policy of a namespace", `{kind: CiliumNetworkPolicy, metadata: {namespace: web}, spec: {endpointSelector: {}, ingress: [{fromEntities: [all]}]}}`, true, false, true},
		{"nothing", `{kind: CiliumNetworkPolicy, metadata: {namespace: data}}`, false, false, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.policy), &u.Object); err != nil {
				t.Fatal(err)
			}
			o, err := parseOpening(u)
			if err != nil || o.Opens() != c.opens || o.Selects(redis, all) != c.selects || o.MaySelect("com.trip/redis", "bobs") != c.may {
				t.Errorf("opens %v, selects %v, may select %v, %v", o.Opens(), o.Selects(redis, all), o.MaySelect("com.trip/redis", "bobs"), err)
			}
		})
	}
}

// Whatever is written there, what selects a pod may select it.
func FuzzOpening(f *testing.F) {
	f.Add([]byte(`{kind: AuthorizationPolicy, metadata: {namespace: data}, spec: {selector: {matchLabels: {a: b}}, rules: [{}]}}`))
	f.Add([]byte(`{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchLabels: {"k8s:a": b}}, ingress: [{fromEntities: [all]}]}}`))
	f.Fuzz(func(t *testing.T, policy []byte) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(policy, &u.Object); err != nil || u.Object == nil {
			return
		}
		o, err := parseOpening(u)
		if err != nil {
			return
		}
		if o.Selects(map[string]string{"a": "b", namespaceKey: o.Namespace}, all) && !o.MaySelect("a", "b") {
			t.Errorf("%s selects a pod that it may not select", policy)
		}
	})
}
