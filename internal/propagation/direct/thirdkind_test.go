package direct_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// toyPolicy is the kind of an enforcer that does not exist.
var toyPolicy = objectkind.Entry{Enforcer: "toy", Kind: objectkind.Kind{
	Target:            schema.GroupVersionKind{Group: "toy.example", Version: "v1", Kind: "ToyPolicy"},
	TargetResource:    schema.GroupVersionResource{Group: "toy.example", Version: "v1", Resource: "toypolicies"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedToyPolicy"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedtoypolicies"},
	Prefix:            "toy",
}}

// TestThirdKind checks that the registration of a kind is enough for its objects to be written into members beside those of other kinds, read
// back, restored, removed by the removal protocol, and guarded there.
func TestThirdKind(t *testing.T) {
	defer objectkind.Register(toyPolicy)()
	f, stop, err := newFleet(toyPolicy.Kind)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	f.conformance(t)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(toyPolicy.Target)
	u.SetName(v1alpha1.ObjectPrefix + "mallory")
	if _, err := f.admins["m1"].Resource(toyPolicy.TargetResource).Create(t.Context(), u, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the guard admits an administrator: %v", err)
	}
}
