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

// TestObjectOfAnotherResourceIsNotOverwritten checks that a Federated object with the name of a resource's unit that protects another
// resource, which an administrator can create, is not overwritten: the second resource must not remove the first one's protection.
func TestObjectOfAnotherResourceIsNotOverwritten(t *testing.T) {
	s := newScenario(t, shared, "collisions")
	first, second := string(s.resource()), string(s.resource())+"-second"
	name := v1alpha1.ObjectPrefix + policy.UnitID(second)
	s.protect(v1alpha1.ModeEnforce)
	s.until("the first is protected", func() string {
		if u, _ := s.federated(); u == nil {
			return "no federated object"
		}
		return ""
	})
	u, _ := s.federated()
	u.SetName(name)
	u.SetResourceVersion("")
	u.SetUID("")
	u.SetFinalizers([]string{"acp.io/test"}) // the adapter deletes it as a leftover of the first, and it has to stay
	s.create(u)
	t.Cleanup(func() {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(federation.CiliumPolicy.Federated)
		change(s, s.host, o, name, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	})
	protects := func() string {
		u, _ := s.federatedOf(federation.CiliumPolicy, name)
		if u == nil {
			return "nothing"
		}
		return u.GetAnnotations()[federation.AnnotationResource]
	}
	for object, mode := range map[string]v1alpha1.Mode{"collides-enforced": v1alpha1.ModeEnforce, "collides-observed": v1alpha1.ModeObserve} {
		s.create(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: object},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(second), Mode: mode}})
		s.until("the second reports the conflict", func() string {
			var o v1alpha1.ProtectedResource
			if err := s.host.Get(s.ctx, types.NamespacedName{Name: object}, &o); err != nil {
				t.Fatal(err)
			}
			c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionCompiled)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonInvalid {
				return "no such condition"
			}
			return ""
		})
		if got := protects(); got != first {
			t.Errorf("%s: the object is about %s now", object, got)
		}
	}
}
