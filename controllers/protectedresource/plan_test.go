package protectedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// TestRemovalWaitsForEveryMember checks that each of the three records alone keeps the Federated object until the member was
// seen without it. The status cache is empty, as after a restart.
func TestRemovalWaitsForEveryMember(t *testing.T) {
	away := federation.Observation{Registered: true, Message: message.Verbatim("away")}
	without := federation.Observation{Registered: true, Reachable: true}
	with := federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Name: "acp-x"}}
	unregistered := federation.Observation{Message: message.Verbatim("no such cluster")}
	for _, c := range []struct {
		reason     string
		annotation string
		kubefed    map[string]string
		status     []string
		seen       bool
		m1         federation.Observation
		forget     string
		deletes    bool
	}{
		{"the annotation remembers", "m1", nil, nil, true, away, "", false},
		{"KubeFed remembers", "", map[string]string{"m1": "WaitingForRemoval"}, nil, true, away, "", false},
		{"the status remembers", "", nil, []string{"m1"}, true, away, "", false},
		{"a member that still has it", "m1", nil, nil, true, with, "", false},
		{"a member that is no longer registered was not seen", "m1", nil, nil, true, unregistered, "", false},
		{"a member that is gone for good", "m1", map[string]string{"m1": ""}, []string{"m1"}, true, unregistered, "m1", true},
		{"a member that is only said to be gone", "m1", nil, nil, true, away, "m1", false},
		{"KubeFed has not handled the empty placement", "m1", nil, nil, false, without, "", false},
		{"seen without it", "m1", map[string]string{"m1": ""}, []string{"m1"}, true, without, "", true},
		{"never anywhere", "", nil, nil, true, away, "", true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			e := &federation.Object{Kind: federation.CiliumPolicy, Propagation: federation.Propagation{Seen: c.seen, Clusters: c.kubefed},
				Meta: metav1.ObjectMeta{Name: "acp-x", ResourceVersion: "1", Annotations: map[string]string{federation.AnnotationEverPlaced: c.annotation}}}
			f := &facts{Resource: "r", Existing: []*federation.Object{e}, Observed: observations{"acp-x": {"m1": c.m1}},
				Objects: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationForget: c.forget}},
					Spec: v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeObserve},
				}}, StatusMembers: c.status}
			if c.m1.Registered {
				f.Clusters = []federation.Cluster{{Name: "m1"}}
			}
			p, err := newPlan(f)
			if err != nil || len(p.Writes) > 0 || (len(p.Deletes) == 1) != c.deletes {
				t.Errorf("%d writes, %d deletes, %v", len(p.Writes), len(p.Deletes), err)
			}
		})
	}
}

// TestFrozenPlan checks that nothing is written while no ProtectedResource says that the resource may be opened.
func TestFrozenPlan(t *testing.T) {
	placed := &federation.Object{Kind: federation.CiliumPolicy, Placement: []string{"m1"}, TemplateSpec: map[string]any{},
		Meta: metav1.ObjectMeta{Name: "acp-x", ResourceVersion: "1"}}
	object := func(mode v1alpha1.Mode, clusterModes ...v1alpha1.ClusterMode) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Mode: mode, ClusterModes: clusterModes}}
	}
	for _, c := range []struct {
		reason  string
		objects []*v1alpha1.ProtectedResource
		kept    bool
	}{
		{"the ProtectedResource vanished", nil, true},
		{"it is in Enforce, and nothing could be compiled", []*v1alpha1.ProtectedResource{object(v1alpha1.ModeEnforce)}, true},
		{
			"it is in Audit in one member",
			[]*v1alpha1.ProtectedResource{object(v1alpha1.ModeObserve, v1alpha1.ClusterMode{Cluster: "m1", Mode: v1alpha1.ModeAudit})},
			true,
		},
		{"one of two is in Enforce", []*v1alpha1.ProtectedResource{object(v1alpha1.ModeObserve), object(v1alpha1.ModeEnforce)}, true},
		{"all are in Observe", []*v1alpha1.ProtectedResource{object(v1alpha1.ModeObserve), object(v1alpha1.ModeObserve)}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := &facts{Resource: "r", Existing: []*federation.Object{placed}, Objects: c.objects}
			p, err := newPlan(f)
			if err != nil || p.Frozen != c.kept || (len(p.Writes) == 0) != c.kept {
				t.Errorf("kept %v, %d writes, %v", p.Frozen, len(p.Writes), err)
			}
		})
	}
}
