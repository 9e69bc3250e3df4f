package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestResourceClassInUseIsNotDeleted checks that a class with units is kept: without its class a unit could not be compiled, so a revocation
// would reach no member.
func TestResourceClassInUseIsNotDeleted(t *testing.T) {
	s := enforced(t, "classheld")
	var c v1alpha1.ResourceClass
	get := func() error { return s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &c) }
	if err := get(); err != nil {
		t.Fatal(err)
	}
	if err := s.host.Delete(s.ctx, &c); err != nil {
		t.Fatal(err)
	}
	s.until("the deletion waits, and a condition has the reason", func() string {
		if err := get(); err != nil {
			t.Fatalf("the class is gone: %v", err)
		}
		if a := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAccepted); a == nil || a.Status != metav1.ConditionFalse {
			return "there is no such condition"
		}
		return ""
	})
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
	s.until("the unit has no rules", func() string {
		_, o := s.federated()
		if o == nil {
			t.Fatal("the unit is gone")
		}
		if rules, ok := o.TemplateSpec["ingress"].([]any); !ok || len(rules) != 1 || len(rules[0].(map[string]any)) != 0 {
			return "the unit still has rules"
		}
		return ""
	})
	s.pushUntilStates("both members are realized", bothRealized)
	s.setMode(v1alpha1.ModeObserve)
	s.untilOpen()
	s.push()
	s.untilPlaced()
	s.push()
	s.until("the class is deleted after the last unit", func() string {
		if err := get(); !apierrors.IsNotFound(err) {
			return "it is still there"
		}
		return ""
	})
}

// TestSubjectClassInUseIsNotDeleted checks that a class with statements is kept: without its class a deny could not be expressed, and would
// remove the allows that it could have overridden.
func TestSubjectClassInUseIsNotDeleted(t *testing.T) {
	s := enforced(t, "subjectsheld")
	var c v1alpha1.SubjectClass
	get := func() error { return s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &c) }
	if err := get(); err != nil {
		t.Fatal(err)
	}
	if err := s.host.Delete(s.ctx, &c); err != nil {
		t.Fatal(err)
	}
	s.until("the deletion waits, and a condition names the statement", func() string {
		if err := get(); err != nil {
			t.Fatalf("the class is gone: %v", err)
		}
		a := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAccepted)
		if a == nil || a.Status != metav1.ConditionFalse || !strings.Contains(a.Message, s.service+"/one") {
			return fmt.Sprintf("condition %+v", a)
		}
		return ""
	})
	if reason := s.unitHas("one"); reason != "" {
		t.Errorf("the statement is no longer in the unit: %s", reason)
	}
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
	s.until("the class is deleted after the last statement", func() string {
		if err := get(); !apierrors.IsNotFound(err) {
			return "it is still there"
		}
		return ""
	})
}
