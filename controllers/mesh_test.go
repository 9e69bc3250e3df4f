package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// TestPodsOfAnotherMeshAreAddresses checks that, in members without a common mesh, a grant to an application of the other member is refused
// until its addresses are registered, and that a deny of such an application denies all addresses.
func TestPodsOfAnotherMeshAreAddresses(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := newScenario(t, f, "apart")
	s.place("m1")
	s.identity("m2", "70001", "far")
	s.identity("m2", "70002", "foe")
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("one", "far"))
	s.until("the grant is in the unit", func() string { return s.unitHas("one") })
	refused := func() string {
		var out []string
		for _, r := range s.policy().Status.Refused {
			out = append(out, r.SID+": "+r.Message)
		}
		return strings.Join(out, "\n")
	}
	if r := refused(); r != "" {
		t.Fatalf("members that declare nothing are in one mesh: %s", r)
	}
	for _, m := range []string{"m1", "m2"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("core.kubefed.io/v1beta1")
		u.SetKind("KubeFedCluster")
		if err := s.host.Get(s.ctx, types.NamespacedName{Namespace: fedNS, Name: m}, u); err != nil {
			t.Fatal(err)
		}
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[federation.AnnotationMesh] = federation.NoMesh
		u.SetAnnotations(annotations)
		if err := s.host.Update(s.ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	s.until("its pods have no identity in m1", func() string {
		if r := refused(); !strings.Contains(r, "one: ") || !strings.Contains(r, "has pods in m2 only, which is in another cluster mesh") {
			return "refused: " + r
		}
		return ""
	})
	deny := s.statement("two", "foe")
	deny.Effect = v1alpha1.EffectDeny
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = append(p.Spec.Statements, deny) })
	s.until("m1 denies all addresses", func() string {
		_, o := s.federated()
		if o == nil || !strings.Contains(fmt.Sprint(o.Overrides["m1"].Spec["ingressDeny"]), "cidr:0.0.0.0/0") {
			return fmt.Sprint(o)
		}
		return ""
	})
	s.externalWorkload("gateway", "far", "203.0.113.7")
	s.until("an allow of addresses has no effect beside that", func() string {
		if r := refused(); !strings.Contains(r, "all addresses are denied these ports") {
			return "refused: " + r
		}
		return ""
	})
	s.externalWorkload("foes", "foe", "203.0.113.8")
	s.until("all of them are distinguished by addresses", refused)
}
