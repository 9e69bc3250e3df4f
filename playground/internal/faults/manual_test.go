package faults

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestPodOf checks that a manual change finds the single server that a policy selects, for Cilium and for Istio.
func TestPodOf(t *testing.T) {
	s, _ := newPair(t)
	d := &drill{topology: s}
	for _, c := range []struct{ reason, object, want string }{
		{"Cilium's", `{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchLabels: {"k8s:com.trip/queue": jobs}}}}`, "b/server-0"},
		{"Istio's", `{kind: AuthorizationPolicy, spec: {selector: {matchLabels: {com.trip/queue: jobs}}}}`, "b/server-0"},
		{"of another resource", `{kind: AuthorizationPolicy, spec: {selector: {matchLabels: {com.trip/queue: mails}}}}`, ""},
		{
			"of every resource",
			`{kind: CiliumClusterwideNetworkPolicy, spec: {endpointSelector: {matchExpressions: [{key: "k8s:com.trip/queue", operator: Exists}]}}}`,
			"",
		},
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

// TestCheckEachChangeMade checks that a run with selected manual changes fails unless each of them was made.
func TestCheckEachChangeMade(t *testing.T) {
	names := map[string]bool{}
	for _, h := range manualChanges() {
		if names[h.name] {
			t.Errorf("two manual changes have the name %s", h.name)
		}
		names[h.name] = true
	}
	foreign := manualChangesMatching("foreign")
	if len(foreign) != 8 || len(manualChangesMatching("")) != len(names) || len(manualChangesMatching("nothing like it")) != 0 {
		t.Fatalf("%d foreign policy changes, %d in all", len(foreign), len(manualChangesMatching("")))
	}
	d := &drill{onlyChanges: "foreign", changeCounts: map[string]int{}}
	for _, h := range foreign {
		if err := d.checkEachChangeMade(); err == nil || !strings.Contains(err.Error(), h.name) {
			t.Errorf("%s was never made: %v", h.name, err)
		}
		d.changeCounts[h.name]++
	}
	if err := d.checkEachChangeMade(); err != nil {
		t.Error(err)
	}
	if err := (&drill{}).checkEachChangeMade(); err != nil {
		t.Errorf("a run without a filter fails: %v", err)
	}
}
