package federation

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWasPlacedIn compares WasPlacedIn with EverPlaced, whose sources are the placement, the annotation, and what the engine lists.
func TestWasPlacedIn(t *testing.T) {
	o := &Object{
		Meta:        metav1.ObjectMeta{Annotations: map[string]string{AnnotationEverPlaced: "m1, m2,,m10"}},
		Placement:   []string{"m3"},
		Propagation: Propagation{Clusters: map[string]string{"m4": ""}},
	}
	for _, object := range []*Object{o, {}} {
		for _, cluster := range []string{"m1", "m2", "m3", "m4", "m5", "m10", "m", "m1, m2", ""} {
			if got, want := object.WasPlacedIn(cluster), slices.Contains(object.EverPlaced(), cluster); got != want {
				t.Errorf("WasPlacedIn(%q) = %v, EverPlaced returns %v", cluster, got, object.EverPlaced())
			}
		}
	}
}
