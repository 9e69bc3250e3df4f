package controllers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// TestNamesThatMeet: object names are short, so somebody who may choose a resource's name can make it meet another's. That
// must not take the first one's protection away.
func TestNamesThatMeet(t *testing.T) {
	const first, second = "trnv1:rsc:trip-com:collisions:clusters:bobs-cluster-1218760", "trnv1:rsc:trip-com:collisions:clusters:bobs-cluster-199698"
	name := v1alpha1.ObjectPrefix + policy.UnitID(first)
	if policy.UnitID(second) != policy.UnitID(first) {
		t.Fatal("names are made differently now: find two that meet, or show in another way that the first is kept")
	}
	s := begin(t, shared, "collisions")
	protect := func(object, resource string, mode v1alpha1.Mode) {
		s.create(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: object},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: mode}})
	}
	protects := func() string {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(federation.CiliumPolicy.Federated)
		if err := s.host.Get(s.ctx, types.NamespacedName{Name: name}, u); err != nil {
			return err.Error()
		}
		return u.GetAnnotations()[federation.AnnotationResource]
	}
	protect("collides-first", first, v1alpha1.ModeEnforce)
	s.until("the first is protected", func() string {
		if got := protects(); got != first {
			return got
		}
		return ""
	})
	for object, mode := range map[string]v1alpha1.Mode{"collides-enforced": v1alpha1.ModeEnforce, "collides-observed": v1alpha1.ModeObserve} {
		protect(object, second, mode)
		s.until("the second is told", func() string {
			var o v1alpha1.ProtectedResource
			if err := s.host.Get(s.ctx, types.NamespacedName{Name: object}, &o); err != nil {
				t.Fatal(err)
			}
			if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionCompiled); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonInvalid {
				return "no complaint"
			}
			return ""
		})
		if got := protects(); got != first {
			t.Errorf("%s: the object is about %s now", object, got)
		}
	}
}
