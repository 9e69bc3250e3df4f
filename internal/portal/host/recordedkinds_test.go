package host

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/externalchanges/event"
)

// listed is a cache that can only be listed.
type listed struct {
	cache.Cache
	objects client.Reader
}

func (l listed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.objects.List(ctx, list, opts...)
}

// TestEveryRecordedKindIsCompared checks that each kind whose changes are recorded is also compared at the start of a portal: the watch
// does not report the changes that were made while no portal ran.
func TestEveryRecordedKindIsCompared(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	known := scheme.KnownTypes(v1alpha1.GroupVersion)
	kinds := map[string]bool{}
	for kind := range known {
		made, err := scheme.New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := made.(client.Object); ok && recorded(o) != "" {
			kinds[recorded(o)] = true
		}
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(event.Kinds)), slices.Sorted(maps.Keys(kinds))); d != "" {
		t.Errorf("the kinds that the webhook reports differ from those that are recorded: %s", d)
	}
	objects := fake.NewClientBuilder().WithScheme(scheme)
	for _, kind := range event.Kinds {
		o := emptyObject(kind)
		if o == nil {
			t.Fatalf("%s is read as no object", kind)
		}
		o.SetName("one")
		objects.WithObjects(o)
	}
	deleted := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "gone", Finalizers: []string{"acp.io/test"}}}
	c := objects.WithObjects(deleted).Build()
	if err := c.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	h := &Host{cache: listed{objects: c}}
	rows, err := h.ObjectRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Kind+"/"+r.Name)
	}
	var want []string
	for _, kind := range event.Kinds {
		want = append(want, kind+"/one")
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
