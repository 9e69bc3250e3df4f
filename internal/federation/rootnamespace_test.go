package federation

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func aRoot(t *testing.T, objects ...runtime.Object) (*RootNamespace, *fake.FakeDynamicClient) {
	t.Helper()
	host := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{namespaceResource: "FederatedNamespaceList"}, objects...)
	return NewRootNamespace(host, IstioPolicy, logr.Discard(), func() {}), host
}

func root(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedNamespace",
		"metadata": map[string]any{"name": "istio-system", "namespace": "istio-system", "labels": map[string]any{"acp.io/managed-by": "acp-adapter"},
			"annotations": map[string]any{"kubefed.io/orphan": "true"}, "finalizers": []any{"acp.io/root-namespace"}},
		"spec": map[string]any{"placement": map[string]any{"clusterSelector": map[string]any{}}},
	}}
	change(u)
	return u
}

// A change of the FederatedNamespace could remove Istio's policies from members, so it is reverted.
func TestRootNamespaceIsCorrected(t *testing.T) {
	narrowed := map[string]any{"placement": map[string]any{"clusters": []any{}, "clusterSelector": map[string]any{}}}
	cases := map[string]struct {
		reason string
		change func(*unstructured.Unstructured)
		right  bool
	}{
		"Right": {"nothing is wrong", func(*unstructured.Unstructured) {}, true},
		"More": {"an additional annotation removes nothing", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"kubefed.io/orphan": "true", "a": "b"})
		}, true},
		"Narrowed": {"an empty list of clusters is none", func(u *unstructured.Unstructured) { u.Object["spec"] = narrowed }, false},
		"Template": {
			"a template would be brought to the members' namespaces",
			func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["template"] = map[string]any{} },
			false,
		},
		"NoOrphan":    {"deleting it could delete the members' namespaces", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }, false},
		"NoFinalizer": {"deleting it would take the policies away", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }, false},
		"Deleting": {"what is being deleted gets no finalizer again", func(u *unstructured.Unstructured) {
			u.SetFinalizers(nil)
			u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, _ := aRoot(t)
			u := root(tc.change)
			state, err := r.parse(u)
			if err != nil || state.right != tc.right {
				t.Errorf("%s: right %t, %v", tc.reason, state.right, err)
			}
			if again, err := r.parse(r.corrected(u)); err != nil || !again.right {
				t.Errorf("what was corrected is not right: %v", err)
			}
		})
	}
}

func TestRootNamespaceIsCreatedAndKept(t *testing.T) {
	r, host := aRoot(t)
	r.watch.synced = true
	if why := r.Problem(); why.IsZero() {
		t.Error("there is no FederatedNamespace, and no problem")
	}
	if err := r.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	objects := host.Resource(namespaceResource).Namespace("istio-system")
	made, err := objects.Get(t.Context(), "istio-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(root(func(*unstructured.Unstructured) {}).Object, made.Object); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if why := r.Problem(); !why.IsZero() {
		t.Error(why)
	}
	made.Object["spec"] = map[string]any{"placement": map[string]any{"clusters": []any{}}}
	if made, err = objects.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.watch.Offer(made)
	if why := r.Problem(); why.IsZero() {
		t.Error("the FederatedNamespace names no members, and there is no problem")
	}
	if err := r.ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if why := r.Problem(); !why.IsZero() {
		t.Error(why)
	}
}
