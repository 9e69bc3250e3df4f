package faults

import (
	"strings"
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

// A run that asks for some hands fails unless each of them came, so that a form that never runs is noticed.
func TestEveryHandCame(t *testing.T) {
	names := map[string]bool{}
	for _, h := range hands() {
		if names[h.name] {
			t.Errorf("two hands are called %s", h.name)
		}
		names[h.name] = true
	}
	beside := handsWith("beside")
	if len(beside) != 8 || len(handsWith("")) != len(names) || len(handsWith("nothing like it")) != 0 {
		t.Fatalf("%d hands beside, %d in all", len(beside), len(handsWith("")))
	}
	d := &drill{onlyHands: "beside", handsCame: map[string]int{}}
	for _, h := range beside {
		if err := d.everyHandCame(); err == nil || !strings.Contains(err.Error(), h.name) {
			t.Errorf("%s never came: %v", h.name, err)
		}
		d.handsCame[h.name]++
	}
	if err := d.everyHandCame(); err != nil {
		t.Error(err)
	}
	if err := (&drill{}).everyHandCame(); err != nil {
		t.Errorf("nobody asked for any: %v", err)
	}
}
