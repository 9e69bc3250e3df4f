package protectedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// TestWildcardIsRemovedStepByStep checks that, after the last statement, each step depends on the object and the members
// alone. The status cache and the statuses are empty, as after a crash between any two steps.
func TestWildcardIsRemovedStepByStep(t *testing.T) {
	spec := map[string]any{"endpointSelector": map[string]any{"matchExpressions": []any{}}, "log": map[string]any{"value": "acp:x"},
		"enableDefaultDeny": map[string]any{"ingress": false, "egress": false}, "ingress": []any{map[string]any{"fromEntities": []any{"all"}}}}
	empty := map[string]any{}
	for k, v := range spec {
		empty[k] = v
	}
	empty["ingress"] = []any{map[string]any{}}
	empty = enforcer.WithRuleLabel(empty)
	seen := func(spec map[string]any) federation.Observation {
		r := enforcer.Revision(spec)
		return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Name: "acp-x", Revision: r, Label: r}}
	}
	without := federation.Observation{Registered: true, Reachable: true}
	away := federation.Observation{Registered: true, Message: message.Verbatim("away")}
	var unregistered federation.Observation
	type step struct{ empties, nowhere, deletes bool }
	both := []string{"m1", "m2"}
	for _, c := range []struct {
		reason    string
		spec      map[string]any
		placement []string
		forget    string
		handled   bool
		former    federation.Engine // of m1, which moves
		m1, m2    federation.Observation
		want      step
	}{
		{"the last statement just went", spec, both, "", true, "", seen(spec), seen(spec), step{empties: true}},
		{"a member is away when it goes", spec, both, "", true, "", seen(spec), away, step{empties: true}},
		{"emptied, and no member shows it", empty, both, "", false, "", seen(spec), seen(spec), step{}},
		{"emptied, and one member shows it", empty, both, "", true, "", seen(empty), seen(spec), step{}},
		{"emptied, and a member is away", empty, both, "", true, "", seen(empty), away, step{}},
		{"emptied, and a member is no longer registered", empty, both, "", true, "", seen(empty), unregistered, step{}},
		{"every member shows it", empty, both, "", true, "", seen(empty), seen(empty), step{nowhere: true}},
		{"every member shows it, and the agent of the former engine may create the earlier version again", empty, both, "", false, federation.EngineOCM,
			seen(empty), seen(empty), step{}},
		{"every member shows it, and KubeFed is the former engine", empty, both, "", true, federation.EngineKubeFed, seen(empty), seen(empty),
			step{nowhere: true}},
		{"the other member is gone for good", empty, []string{"m1"}, "m2", true, "", seen(empty), unregistered, step{nowhere: true}},
		{"placed nowhere, and KubeFed has not handled it", empty, nil, "", false, "", without, without, step{}},
		{"placed nowhere, and a member still has it", empty, nil, "", true, "", without, seen(empty), step{}},
		{"placed nowhere, and a member is away", empty, nil, "", true, "", without, away, step{}},
		{"no member has it", empty, nil, "", true, "", without, without, step{deletes: true}},
		{"somebody filled it again", spec, both, "", true, "", seen(empty), seen(empty), step{empties: true}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			e := &federation.Object{Kind: federation.CiliumPolicy, Placement: c.placement, TemplateSpec: c.spec,
				TemplateLabels: map[string]string{v1alpha1.LabelUnit: "x"},
				Propagation:    federation.Propagation{Seen: c.handled, Clusters: map[string]string{"m1": ""}},
				Meta: metav1.ObjectMeta{Name: "acp-x", ResourceVersion: "1", Annotations: map[string]string{
					federation.AnnotationEverPlaced: "m1,m2", federation.AnnotationForget: c.forget, federation.AnnotationResource: "r:*"}}}
			if c.former != "" {
				e.Reporter = movingFrom{"m1", c.former}
			}
			e.TemplateLabels = withoutAllows([]*federation.Object{e})["acp-x"].Object.Labels
			if c.want.empties {
				e.TemplateLabels = map[string]string{v1alpha1.LabelUnit: "x"}
			}
			e.Meta.Labels = e.TemplateLabels
			f := &facts{Resource: "r:*", Existing: []*federation.Object{e}, Open: withoutAllows([]*federation.Object{e}),
				Observed: observations{"acp-x": {"m1": c.m1, "m2": c.m2}}}
			for _, name := range both {
				if f.Observed["acp-x"][name].Registered {
					f.Clusters = append(f.Clusters, federation.Cluster{Name: name})
				}
			}
			p, err := newPlan(f)
			if err != nil {
				t.Fatal(err)
			}
			got := step{deletes: len(p.Deletes) == 1}
			for _, w := range p.Writes {
				got.nowhere = len(w.Placement) == 0
				got.empties = len(w.Placement) > 0 && enforcer.Revision(w.TemplateSpec) == enforcer.Revision(empty)
			}
			if got != c.want {
				t.Errorf("%+v, want %+v; writes %v", got, c.want, p.Writes)
			}
		})
	}
}

// movingFrom reports that a member moves from an engine that may still write there.
type movingFrom struct {
	member string
	former federation.Engine
}

func (m movingFrom) Report(_ *federation.Object, cluster string) federation.Report {
	if cluster != m.member {
		return federation.Report{Handled: true, Applied: true}
	}
	return federation.Report{Applied: true, SharedWith: m.former}
}

func (movingFrom) Handled(*federation.Object) bool { return true }
