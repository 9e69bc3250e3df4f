package faults

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A hand touches what is about one server, in either dataplane.
func TestPodOf(t *testing.T) {
	s, _ := onePair(t)
	d := &drill{scene: s}
	for _, c := range []struct{ reason, object, want string }{
		{"Cilium's", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchLabels: {"k8s:com.trip/queue": jobs}}}}`, "b/server-0"},
		{"Istio's", `{kind: AuthorizationPolicy, spec: {selector: {matchLabels: {com.trip/queue: jobs}}}}`, "b/server-0"},
		{"of another resource", `{kind: AuthorizationPolicy, spec: {selector: {matchLabels: {com.trip/queue: mails}}}}`, ""},
		{"of every resource", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchExpressions: [{key: "k8s:com.trip/queue", operator: Exists}]}}}`, ""},
		{"of a subject", `{kind: CiliumCIDRGroup, spec: {externalCIDRs: [10.0.0.0/8]}}`, ""},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.object), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got := d.podOf("m1", u); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
