package controllers_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/testenv"
)

func TestKubeFedInstalledLaterIsUsed(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "controllers/testdata/host"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := newScenario(t, f, "early")
	s.protect(v1alpha1.ModeEnforce)
	s.until("the missing kind is reported", func() string {
		c := meta.FindStatusCondition(s.protected().Status.Conditions, v1alpha1.ConditionCompiled)
		if c == nil || c.Reason != v1alpha1.ReasonNoPropagator {
			return fmt.Sprint(c)
		}
		return ""
	})
	install(s, filepath.Join(testenv.Root(), "deploy/kubefed/ciliumclusterwidenetworkpolicies.yaml"))
	s.until("the kind is used", func() string {
		c := meta.FindStatusCondition(s.protected().Status.Conditions, v1alpha1.ConditionCompiled)
		if c.Reason != v1alpha1.ReasonCompiled {
			return fmt.Sprint(c)
		}
		return ""
	})
}

// install creates the CRD in a file.
func install(s *scenario, file string) {
	s.Helper()
	docs, err := documents(file)
	if err != nil {
		s.Fatal(err)
	}
	for _, u := range docs {
		if u.GetKind() == "CustomResourceDefinition" {
			s.create(u)
		}
	}
}

func TestYoungerOfOverlappingClassesIsLeftOut(t *testing.T) {
	s := newScenario(t, shared, "overlaps")
	accepted := func(name string, want metav1.ConditionStatus, reason string) {
		t.Helper()
		s.until(name+" has the condition", func() string {
			var c v1alpha1.ResourceClass
			if err := s.host.Get(s.ctx, types.NamespacedName{Name: name}, &c); err != nil {
				t.Fatal(err)
			}
			got := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAccepted)
			if got == nil || got.Status != want || got.Reason != reason {
				return fmt.Sprint(got)
			}
			return ""
		})
	}
	accepted("overlaps", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	other := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "overlaps-other"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: "trnv1:rsc:trip-com:overlaps:clusters:b*", LabelKey: "com.trip/other",
		Actions:   []v1alpha1.ClassAction{{Name: "overlaps:connect", Ports: []v1alpha1.Port{{Port: 1}}}},
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
	}}
	s.create(other)
	accepted("overlaps-other", metav1.ConditionFalse, v1alpha1.ReasonOverlap)
	accepted("overlaps", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	older := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "overlaps"}}
	if err := s.host.Delete(s.ctx, older); err != nil {
		t.Fatal(err)
	}
	accepted("overlaps-other", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
}
