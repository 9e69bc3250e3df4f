package protectedresource

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// TestReplacedObjectClosesUntilItsSuccessorDoes checks that an object of the unit that has another name now, or that is one
// of fewer parts, is removed from a member only when its replacement was read back there. Otherwise the member would be
// open in between.
func TestReplacedObjectClosesUntilItsSuccessorDoes(t *testing.T) {
	spec := map[string]any{"ingress": []any{map[string]any{}}}
	rendered, err := enforcer.Render(enforcer.Object{Name: "acp-new", Spec: spec}, "new", nil)
	if err != nil {
		t.Fatal(err)
	}
	there := federation.Observation{
		Registered: true,
		Reachable:  true,
		Object:     &federation.Observed{Name: "acp-new", Revision: rendered.Revision, Label: rendered.Revision},
	}
	refused := federation.Observation{
		Registered: true,
		Reachable:  true,
		Object:     &federation.Observed{Name: "acp-new", Revision: rendered.Revision, Label: rendered.Revision, Invalid: "no"},
	}
	absent := federation.Observation{Registered: true, Reachable: true}
	away := federation.Observation{Registered: true}
	former := federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Name: "acp-old"}}
	both := []string{"m1", "m2"}
	for _, c := range []struct {
		reason string
		m1, m2 federation.Observation
		// placed is where the old object is placed afterwards.
		placed []string
	}{
		{"the successor is nowhere yet", absent, absent, both},
		{"it is in one member", there, absent, []string{"m2"}},
		{"it is in one member, and the other is away", there, away, []string{"m2"}},
		{"the dataplane of one member does not accept it", there, refused, []string{"m2"}},
		{"it is in both", there, there, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			old := &federation.Object{Kind: federation.CiliumPolicy, Placement: both, TemplateSpec: spec,
				Meta: metav1.ObjectMeta{Name: "acp-old", ResourceVersion: "1", Annotations: map[string]string{federation.AnnotationEverPlaced: "m1,m2"}}}
			queues := policycache.NewQueues(clock.RealClock{})
			f := &facts{Resource: "r:*", Wanted: true, View: policycache.New(queues).View(), Unit: policy.Unit{Resource: "r:*"}, Placement: both,
				Rendered: []enforcer.Rendered{rendered}, Existing: []*federation.Object{old}, Clusters: []federation.Cluster{{Name: "m1"}, {Name: "m2"}},
				Observed: observations{"acp-old": {"m1": former, "m2": former}, "acp-new": {"m1": c.m1, "m2": c.m2}}}
			p, err := newPlan(f)
			if err != nil {
				t.Fatal(err)
			}
			placed := both
			for _, w := range p.Writes {
				if w.Meta.Name == "acp-old" {
					placed = w.Placement
					if got := w.Meta.Annotations[federation.AnnotationEverPlaced]; got != "m1,m2" {
						t.Errorf("it remembers %q", got)
					}
				}
			}
			if diff := cmp.Diff(c.placed, placed); diff != "" {
				t.Errorf("placed: -want +got:\n%s", diff)
			}
			for _, m := range both {
				if _, wanted := p.Desired["acp-old"][m]; wanted != slices.Contains(c.placed, m) {
					t.Errorf("desired in %s: %v", m, wanted)
				}
			}
		})
	}
}
