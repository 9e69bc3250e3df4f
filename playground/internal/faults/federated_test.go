package faults

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestFederatedSpecDifference(t *testing.T) {
	parse := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	a, err := parseFederated(parse(`
spec:
  placement: {clusters: [{name: m1}, {name: m2}]}
  template: {metadata: {labels: {acp.io/revision: one, acp.io/unit: u}}, spec: {open: false}}
  overrides:
    - clusterName: m2
      clusterOverrides:
        - {op: replace, path: /spec, value: {open: true}}
        - {op: replace, path: /metadata/labels/acp.io~1revision, value: two}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ reason, member, object, want string }{
		{"equal to the template", "m1", `{metadata: {labels: {acp.io/revision: one, acp.io/unit: u, more: x}}, spec: {open: false}}`, ""},
		{"opened manually", "m1", `{metadata: {labels: {acp.io/revision: one, acp.io/unit: u}}, spec: {open: true}}`, "its spec"},
		{"equal to its override", "m2", `{metadata: {labels: {acp.io/revision: two, acp.io/unit: u}}, spec: {open: true}}`, ""},
		{"without its override", "m2", `{metadata: {labels: {acp.io/revision: one, acp.io/unit: u}}, spec: {open: false}}`, "its spec"},
		{"relabelled", "m1", `{metadata: {labels: {acp.io/revision: one}}, spec: {open: false}}`, "its label acp.io/unit"},
	} {
		if got := a.difference(c.member, parse(c.object)); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
