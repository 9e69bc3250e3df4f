package federation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWithoutIstioIsKnown checks that the declaration of a member is parsed when its registration is read and not for each resource, and that another
// declaration counts when it is set later.
func TestWithoutIstioIsKnown(t *testing.T) {
	const none, ambient = `{"dataplane": "none"}`, `{"dataplane": "ambient", "version": "1.31"}`
	for _, c := range []struct {
		declared string
		want     bool
	}{{none, true}, {ambient, false}, {`{"dataplane": "none", "x": 1}`, false}, {"", false}} {
		cluster, err := ParseCluster(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "m1", "annotations": map[string]any{AnnotationIstio: c.declared}}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := cluster.WithoutIstio(); got != c.want {
			t.Errorf("%q: %t", c.declared, got)
		}
		if n := testing.AllocsPerRun(10, func() { cluster.WithoutIstio() }); n > 0 {
			t.Errorf("%q: %v allocations", c.declared, n)
		}
		for other, want := range map[string]bool{none: true, ambient: false, "": false} {
			cluster.Istio = other
			if got := cluster.WithoutIstio(); got != want {
				t.Errorf("%q after %q: %t", other, c.declared, got)
			}
		}
	}
}
